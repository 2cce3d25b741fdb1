package scheduler_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// Zones take turns, each in the order of names: a1 b1 c1 a2 c2 c3.
func TestNodeOrder(t *testing.T) {
	var states []*nodes.State
	for _, n := range []string{"c3", "a2", "c1", "b1", "c2", "a1"} {
		states = append(states, &nodes.State{Node: &nodes.Node{Slot: len(states), Name: n, Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: n, Labels: map[string]string{corev1.LabelTopologyZone: n[:1]},
		}}}})
	}
	places := scheduler.NewOrder(states).Places()
	if got, want := fmt.Sprint(places), fmt.Sprint([]int{5, 3, 2, 1, 4, 0}); got != want {
		t.Errorf("places %v, want %v", got, want)
	}
}
