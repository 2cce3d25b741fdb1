package metrics

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

func TestOccupancyMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(occupancyCollector{func() []nodes.Occupancy {
		return []nodes.Occupancy{{
			Resource: "nvidia.com/gpu", Exact: true, EmptyNodes: 1, PartialNodes: 2, FullNodes: 3,
			Allocatable: 48, Allocated: 34, FreeOnOccupied: 6, FreeOnEmpty: 8, LargestFitting: 7,
		}}
	}})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			key := family.GetName()
			for _, label := range metric.GetLabel() {
				key += " " + label.GetName() + "=" + label.GetValue()
			}
			got[key] = metric.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"gpu_binpacker_gpu_nodes resource=nvidia.com/gpu state=empty":   1,
		"gpu_binpacker_gpu_nodes resource=nvidia.com/gpu state=partial": 2,
		"gpu_binpacker_gpu_nodes resource=nvidia.com/gpu state=full":    3,
		"gpu_binpacker_gpus_allocatable resource=nvidia.com/gpu":        48,
		"gpu_binpacker_gpus_allocated resource=nvidia.com/gpu":          34,
		"gpu_binpacker_gpus_free on=occupied resource=nvidia.com/gpu":   6,
		"gpu_binpacker_gpus_free on=empty resource=nvidia.com/gpu":      8,
		"gpu_binpacker_largest_fitting_request resource=nvidia.com/gpu": 7,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("metrics lint: %v %v", problems, err)
	}
}

// Before all pods were seen, every node would look empty.
func TestOccupancyMetricsNeedASyncedIndex(t *testing.T) {
	ix, err := index.New(config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ix.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
	})
	registry := prometheus.NewRegistry()
	RegisterIndex(registry, ix)
	states := func() int {
		n, err := testutil.GatherAndCount(registry, "gpu_binpacker_gpu_nodes")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := states(); n != 0 {
		t.Errorf("%d states of nodes before the index is synced", n)
	}
	ix.SetSynced()
	if n := states(); n != 3 {
		t.Errorf("%d states of nodes, want 3", n)
	}
}

// Nodes may offer any number of names that match a prefix; labels stay few, no GPU
// is lost, and an exact name always keeps its own.
func TestOccupancyLabelsAreBounded(t *testing.T) {
	one := nodes.Occupancy{
		EmptyNodes: 1, PartialNodes: 2, FullNodes: 3,
		Allocatable: 4, Allocated: 5, FreeOnOccupied: 6, FreeOnEmpty: 7,
	}
	var all []nodes.Occupancy
	for i := range maxPrefixed + 3 {
		o := one
		o.Resource, o.LargestFitting = fmt.Sprintf("nvidia.com/mig-%02d", i), int64(1000-i)
		all = append(all, o)
	}
	exact := nodes.Occupancy{Resource: "nvidia.com/z", Exact: true, EmptyNodes: 1}
	got := bounded(append(slices.Clone(all), exact))
	want := append(slices.Clone(all[:maxPrefixed]), exact, nodes.Occupancy{
		Resource: "other", EmptyNodes: 3, PartialNodes: 6, FullNodes: 9,
		Allocatable: 12, Allocated: 15, FreeOnOccupied: 18, FreeOnEmpty: 21, LargestFitting: 1000 - maxPrefixed,
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bounded (-want +got):\n%s", diff)
	}
	if got := bounded(all[:maxPrefixed]); len(got) != maxPrefixed {
		t.Errorf("%d entries for %d names", len(got), maxPrefixed)
	}
}
