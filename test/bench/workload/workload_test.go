package workload

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSeedsDecide makes each workload twice with one seed, and once with another.
func TestSeedsDecide(t *testing.T) {
	trace := &Trace{Name: Openb, Nodes: churnNodes(40, newRand(1, 9))}
	for i := range 400 {
		trace.Pods = append(trace.Pods, TracePod{Amounts: podWith(int64(1 + i%2)), Created: int64(i), Deleted: int64(2*i + 1)})
	}
	tests := map[string]func(seed uint64) *Workload{
		Mixed:           func(seed uint64) *Workload { return NewMixed(16, 0.5, Burst, seed) },
		Churn:           func(seed uint64) *Workload { return NewChurn(30, 0.6, 10, 10*time.Second, seed) },
		Openb:           func(seed uint64) *Workload { return trace.Workload(0.3, 60, seed) },
		"openb-multi50": func(seed uint64) *Workload { return trace.WithMultiGPU(0.5, seed).Workload(0.3, 60, seed) },
		"openb-churn":   func(seed uint64) *Workload { return trace.ChurnWorkload(0.3, 60, seed) },
	}
	for name, build := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(build(1), build(1)); diff != "" {
				t.Errorf("the same seed, another workload: %s", diff)
			}
			if cmp.Equal(build(1), build(2)) {
				t.Error("another seed, the same workload")
			}
		})
	}
}

func TestSizes(t *testing.T) {
	tests := map[string]struct {
		workload      *Workload
		wantNodes     int
		wantPods      int
		wantRequested int64
	}{
		// 16*8 = 128 GPUs, half of them
		"uniform": {NewUniform(16, 0.5, Job, Sequential, 1), 16, 64, 64},
		"waiting": {NewWaiting(60, 1), 60, 240, 240},
		// of 64 GPUs: 25.6 -> 26 of 1; 12.8/2 = 6.4 -> 6; 12.8/4 = 3.2 -> 3;
		// 12.8/8 = 1.6 -> 2. Pods 26+6+3+2, GPUs 26+12+12+16.
		"mixed": {NewMixed(16, 0.5, Burst, 1), 16, 37, 66},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := tc.workload
			if len(w.Nodes) != tc.wantNodes || len(w.Pods) != tc.wantPods || w.Requested() != tc.wantRequested {
				t.Errorf("got %d nodes, %d pods, %d GPUs, want %d, %d, %d", len(w.Nodes), len(w.Pods), w.Requested(),
					tc.wantNodes, tc.wantPods, tc.wantRequested)
			}
		})
	}
}

// TestChurnShape looks at a large generated cluster: openb's shares of nodes, 98%
// of pods with one GPU, and the load that was asked for.
func TestChurnShape(t *testing.T) {
	w := NewChurn(1213, 0.6, 100, time.Minute, 1)
	counts := map[int64]int{}
	for _, n := range w.Nodes {
		counts[n.GPUs]++
	}
	if diff := cmp.Diff(map[int64]int{1: 24, 2: 518, 4: 54, 8: 617}, counts); diff != "" {
		t.Errorf("nodes: %s", diff)
	}
	small := 0
	for i := range w.Pods {
		if w.Pod(i).GPUs == 1 {
			small++
		}
	}
	if share := float64(small) / float64(len(w.Pods)); share < 0.96 || share > 0.99 {
		t.Errorf("%.3f of the pods have one GPU", share)
	}
	if load := w.AverageRequested() / float64(w.GPUs()); load < 0.55 || load > 0.65 {
		t.Errorf("load %.2f, want about 0.6", load)
	}
}

// TestChurnEvents checks that a pod comes once, before it leaves.
func TestChurnEvents(t *testing.T) {
	w := NewChurn(30, 0.6, 10, 20*time.Second, 1)
	here := map[int]bool{}
	var last time.Duration
	for i, e := range w.Events {
		if e.At < last {
			t.Fatalf("event %d is before the one before", i)
		}
		last = e.At
		if here[e.Pod] != e.Leaves {
			t.Fatalf("event %d: pod %d comes twice or leaves before it comes", i, e.Pod)
		}
		here[e.Pod] = !e.Leaves
		if i < w.Fill && e.Leaves {
			t.Fatalf("event %d of the fill is a departure", i)
		}
	}
	if last > 20*time.Second || last < 15*time.Second {
		t.Errorf("the last event is at %s", last)
	}
}

// TestTraceChurn checks load and order of a small trace.
func TestTraceChurn(t *testing.T) {
	trace := &Trace{Nodes: times(20, Amounts{GPUs: 8})}
	for i := range 1000 {
		// lifetimes of 1 to 50 seconds
		trace.Pods = append(trace.Pods, TracePod{Amounts: podWith(1), Created: int64(100 * i), Deleted: int64(100*i + 1 + i%50)})
	}
	w := trace.ChurnWorkload(0.5, 50, 1)
	if load := w.AverageRequested() / float64(w.GPUs()); load < 0.45 || load > 0.55 {
		t.Errorf("load %.2f, want about 0.5", load)
	}
	here := map[int]bool{}
	for i, e := range w.Events {
		if here[e.Pod] != e.Leaves || i < w.Fill && e.Leaves {
			t.Fatalf("event %d is out of order: %+v", i, e)
		}
		here[e.Pod] = !e.Leaves
	}
	// The second half of the 1,000 pods arrives in 500/50 = 10 seconds.
	if last := w.Events[len(w.Events)-1].At; last < 9*time.Second || last > 10*time.Second {
		t.Errorf("the last event is at %s, want about 10s", last)
	}
}
