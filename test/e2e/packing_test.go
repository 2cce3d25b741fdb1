package e2e

import (
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// The scenarios of the demo come out packed in an opted-in namespace.
func TestPacking(t *testing.T) {
	for _, s := range scenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			placement, err := scenario.Run(t.Context(), cluster, s, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(placement); err != nil {
				t.Error(err)
			}
		})
	}
}

// The same checks fail when nothing steers: they can tell.
func TestPackingNeedsSteering(t *testing.T) {
	for _, s := range scenario.All() {
		t.Run(s.Name, func(t *testing.T) {
			placement, err := scenario.Run(t.Context(), cluster, s, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check(placement); err == nil {
				t.Errorf("packed without steering: %+v", placement)
			}
			if s.Name == "burst" && placement.NodesUsed() < 14 {
				t.Errorf("the scheduler alone used only %d of 16 nodes", placement.NodesUsed())
			}
		})
	}
}
