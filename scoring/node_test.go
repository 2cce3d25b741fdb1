package scoring

import "testing"

// A node that no valid term can name is never listed: the API server would refuse
// the pod.
func TestInvalidNodeName(t *testing.T) {
	c := newCluster(t, nil, gpuNode("Not_A_Name", list(nvidia, "8")), gpuNode("b", list(nvidia, "8")), gpuNode("c", list(nvidia, "8")))
	d := c.Decide(t.Context(), Request{Pod: gpuPod("p", list(nvidia, "1")), Namespace: "team", UID: "p"})
	for _, n := range d.Ranking {
		if n.Name == "Not_A_Name" {
			t.Errorf("listed: %+v", d.Ranking)
		}
	}
	if len(d.Ranking) != 2 {
		t.Errorf("%d nodes listed, want 2", len(d.Ranking))
	}
}
