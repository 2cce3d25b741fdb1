package webhook

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// replica is a pod as its ReplicaSet creates it.
const replica = `{"metadata":{"generateName":"train-","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"train","uid":"r","controller":true}]},` +
	`"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"8","memory":"64Gi"},"limits":{"nvidia.com/gpu":"1"}}}]}}`

// admit sends a replica and returns the operations on its spec and labels, as text:
// what schedulers and autoscalers group pods by.
func admit(t *testing.T, bed *testBed, i int) string {
	t.Helper()
	request := podCreate([]byte(replica))
	request.UID = types.UID(fmt.Sprintf("0f5c5d2e-8d9b-4b7c-9a51-%012d", i))
	response := bed.Handle(t.Context(), request)
	checkResponse(t, request.Object.Raw, request.UID, response)
	var ops, grouped []decodedOperation
	if response.Patch != nil {
		if err := json.Unmarshal(response.Patch, &ops); err != nil {
			t.Fatal(err)
		}
	}
	for _, op := range ops {
		if !strings.HasPrefix(op.Path, "/metadata/annotations") {
			grouped = append(grouped, op)
		}
	}
	text, err := json.Marshal(grouped)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Autoscalers handle pods of one owner together as long as they are alike. Pods
// that wait for new nodes all are; pods that find room differ only from one full
// node to the next, not from pod to pod.
func TestPodsOfOneOwnerStayAlike(t *testing.T) {
	full := newBed(t, config.Default(), []string{"team-a"}, goldenCluster(t, "full")...)
	first := admit(t, full, 0)
	for i := range 400 {
		if got := admit(t, full, i+1); got != first {
			t.Fatalf("waiting pod %d is another:\n%s\nthe first:\n%s", i, got, first)
		}
	}
	// 3 + 6 + 8 GPUs are free on 3 nodes, then nothing is.
	mixed := newBed(t, config.Default(), []string{"team-a"}, goldenCluster(t, "mixed")...)
	counts, order := map[string]int{}, []string{}
	for i := range 20 {
		spec := admit(t, mixed, i)
		if counts[spec]++; counts[spec] == 1 {
			order = append(order, spec)
		}
	}
	if len(order) != 4 || counts[order[0]] != 3 || counts[order[1]] != 6 || counts[order[2]] != 8 || counts[order[3]] != 3 {
		t.Errorf("pods of %d kinds: %v", len(order), counts)
	}
}

// A node that is gone is in no further ranking, and what was said about it before
// is only a preference, that matches nothing.
func TestNodeGone(t *testing.T) {
	bed := newBed(t, config.Default(), []string{"team-a"}, goldenCluster(t, "mixed")...)
	before := admit(t, bed, 1)
	bed.ix.DeleteNode("g1")
	after := admit(t, bed, 2)
	if !strings.Contains(before, `"g1"`) || strings.Contains(after, `"g1"`) || !strings.Contains(after, `"g2"`) {
		t.Errorf("terms while g1 was there: %s\nand after it was deleted: %s", before, after)
	}
	for _, patch := range []string{before, after} {
		if strings.Contains(patch, "required") {
			t.Errorf("a requirement in %s", patch)
		}
	}
	// The pod with the stale ranking comes again, as on a reinvocation.
	request := podCreate([]byte(replica))
	request.Object.Raw = checkResponse(t, request.Object.Raw, request.UID, bed.Handle(t.Context(), request))
	bed.ix.DeleteNode("g2")
	again := bed.Handle(t.Context(), request)
	if result := string(checkResponse(t, request.Object.Raw, request.UID, again)); strings.Contains(result, `["g2"]`) || !strings.Contains(result, `["g3"]`) {
		t.Errorf("the ranking still names a node that is gone: %s", result)
	}
}
