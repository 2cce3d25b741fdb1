package webhook

import (
	"encoding/json/v2"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// libraryOperation is an operation as the JSON library writes it.
type libraryOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

func apiTerm(weight int32, name string) corev1.PreferredSchedulingTerm {
	return corev1.PreferredSchedulingTerm{Weight: weight, Preference: corev1.NodeSelectorTerm{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
	}}
}

// affinityOf is the node affinity of a pod that had none.
func affinityOf(terms steering.Terms) any {
	operations := steering.Operations(&corev1.Pod{}, &steering.Own{}, &steering.Parts{Terms: terms})
	return operations[len(operations)-1].Value
}

// What we write ourselves is what the library makes of the API's types.
func TestMarshal(t *testing.T) {
	ranked := steering.Terms{{Node: "gpu-1", Weight: 100}, {Node: "ip-10-0-0-9.ec2.internal", Weight: 1}}
	terms := []corev1.PreferredSchedulingTerm{apiTerm(100, "gpu-1"), apiTerm(1, "ip-10-0-0-9.ec2.internal")}
	constraint := []corev1.TopologySpreadConstraint{steering.NeutralConstraint()}
	tests := map[string]struct{ ours, library any }{
		"one term":        {ranked[0], terms[0]},
		"terms":           {ranked, terms},
		"no term":         {steering.Terms{}, []corev1.PreferredSchedulingTerm{}},
		"affinity":        {affinityOf(ranked), corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}},
		"text":            {"gpu-1", "gpu-1"},
		"quoted text":     {`{"nodes":[]} \ <&> é` + "\n\x00", `{"nodes":[]} \ <&> é` + "\n\x00"},
		"text, no UTF-8":  {"a\xffb", "a\xffb"},
		"any other value": {constraint, constraint},
		"an object":       {struct{}{}, struct{}{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := marshal([]steering.Operation{{Op: "remove", Path: "/a~1b"}, {Op: "add", Path: "/spec/\"x", Value: tc.ours}})
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal([]libraryOperation{{Op: "remove", Path: "/a~1b"}, {Op: "add", Path: "/spec/\"x", Value: tc.library}}, written)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("patch (-library +ours):\n%s", diff)
			}
		})
	}
}

// A patch of usual names is written without growing the buffer.
func TestMarshalReservesEnough(t *testing.T) {
	var ranked steering.Terms
	for range 56 {
		ranked = append(ranked, steering.Term{Node: "ip-10-0-0-9.ec2.internal", Weight: 100})
	}
	ops := []steering.Operation{{Op: "add", Path: "/spec/affinity/nodeAffinity", Value: affinityOf(ranked)}}
	if allocations := testing.AllocsPerRun(10, func() {
		if _, err := marshal(ops); err != nil {
			t.Fatal(err)
		}
	}); allocations > 1 {
		t.Errorf("%v allocations, want one", allocations)
	}
}

// The terms of a cluster of 5,000 nodes, written by us and by the library.
func BenchmarkMarshal(b *testing.B) {
	var ranked steering.Terms
	var terms []corev1.PreferredSchedulingTerm
	for i := range 36 {
		name := fmt.Sprintf("node-%05d", i)
		ranked = append(ranked, steering.Term{Node: name, Weight: 1})
		terms = append(terms, apiTerm(1, name))
	}
	for name, write := range map[string]func() ([]byte, error){
		"ours":    func() ([]byte, error) { return marshal([]steering.Operation{{Op: "add", Path: "/x", Value: ranked}}) },
		"library": func() ([]byte, error) { return json.Marshal([]libraryOperation{{"add", "/x", terms}}, written) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := write(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
