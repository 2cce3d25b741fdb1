package index_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// listing makes a pod list so many nodes, n0 first, and look steered to that.
func listing(count int) clustertest.PodOption {
	return func(p *corev1.Pod) {
		for i := range count {
			clustertest.SteeredTo(fmt.Sprint("n", i), "admission")(p)
			terms := clustertest.NodeAffinityOf(p).PreferredDuringSchedulingIgnoredDuringExecution
			terms[i].Weight = max(1, 100-int32(i))
		}
		p.Annotations[config.AnnotationTarget] = "n0"
		p.Annotations[config.AnnotationSteering] = config.SteeringRanked
	}
}

// A pod with as many terms as we ever add is followed along all of them. One with more is
// not followed at all, whatever its annotations say.
func TestPodsWithManyTerms(t *testing.T) {
	for name, tc := range map[string]struct {
		terms    int
		want     int64
		followed bool
	}{
		"as many as we add": {steering.MostElements, 1, true},
		"one more":          {steering.MostElements + 1, 0, false},
		"thousands":         {8000, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.New(t, nil)
			last := fmt.Sprint("n", steering.MostElements-1)
			c.SetNode(clustertest.GPUNode("n0", clustertest.List(clustertest.NVIDIA, "1")))
			c.SetNode(clustertest.GPUNode(last, clustertest.List(clustertest.NVIDIA, "1")))
			pod := clustertest.GPUPod("p", clustertest.List(clustertest.NVIDIA, "1"), listing(tc.terms))
			c.SetPod(pod)
			if got := c.UsedOn("n0"); got != tc.want {
				t.Errorf("%d GPUs used on the target, want %d", got, tc.want)
			}
			c.SetPod(clustertest.GPUPod("bound", clustertest.List(clustertest.NVIDIA, "1"), clustertest.On("n0")))
			if got := c.UsedOn(last); got != tc.want {
				t.Errorf("%d GPUs used on the last node of its list, want %d", got, tc.want)
			}
			if got := c.Size().Waiting == 1; got != tc.followed {
				t.Errorf("counts as waiting: %v, want %v", got, tc.followed)
			}
			clustertest.On("elsewhere")(pod)
			c.SetPod(pod)
			if got := c.Landings()[steering.LandedOther] == 1; got != tc.followed {
				t.Errorf("counts as landed: %v, want %v", got, tc.followed)
			}
			c.DeletePod("p")
			c.DeletePod("bound")
			if size := c.Size(); size != (index.Size{Nodes: 2}) {
				t.Errorf("%+v is left", size)
			}
		})
	}
}
