package cluster

import (
	"strings"
	"testing"
)

func TestCheckTarget(t *testing.T) {
	for target, want := range map[string]string{
		"node-00001": "",                 // empty, in the rare pool
		"node-00003": "in pool common",   //
		"":           "nothing fits",     //
		"elsewhere":  `target "elsewher`, //
	} {
		err := Shapes[2].CheckTarget(target)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", target, err, want)
		}
	}
}

func TestFreeGPUs(t *testing.T) {
	for name, want := range map[string]int{
		"homogeneous": 50*8 + 10, // the empty nodes, and one GPU on every tenth
		"1%-selector": 8,         // the one node of the pool
		"all full":    0,
		"all empty":   100 * 8,
	} {
		s := Find(name)
		if got := s.FreeGPUs(100); got != want {
			t.Errorf("%s: %d free GPUs, want %d", name, got, want)
		}
		if got := s.PodCount(100); got != 100*PodsPerNode {
			t.Errorf("%s: %d pods", name, got)
		}
	}
	if s := Find("nonsense"); s != nil {
		t.Errorf("found %v", s)
	}
}
