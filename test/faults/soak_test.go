package faults

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// soak is how long TestSoak takes: make soak.
var soak = flag.Duration("soak", 0, "how long the soak takes; 0 leaves it out")

const (
	// soakRate is the pods per second that are created, and deleted soon after.
	soakRate = 20
	// killInterval is the time between two kills of the second replica.
	killInterval = time.Minute
	// growth is how much more heap and goroutines the replica that lives on may have
	// in the last third than in the first, as medians: a leak of one object per
	// request doubles them many times over.
	growth = 1.3
)

// soakResult is what soak.json holds.
type soakResult struct {
	Seconds    float64 `json:"seconds"`
	Created    int     `json:"created"`
	Denied     int     `json:"denied"`
	Steered    int     `json:"steered"`
	FailedOpen int     `json:"failedOpen"`
	Kills      int     `json:"kills"`
	// Heap (MiB in use after a garbage collection or before the next one) and
	// Goroutines of the replica that was never killed: medians of the first and of
	// the last third.
	HeapFirst       float64 `json:"heapFirstMiB"`
	HeapLast        float64 `json:"heapLastMiB"`
	GoroutinesFirst float64 `json:"goroutinesFirst"`
	GoroutinesLast  float64 `json:"goroutinesLast"`
	PeakMemoryMiB   int64   `json:"peakMemoryMiB"`
}

// TestSoak creates and deletes pods for a long time, while the second of two
// replicas is killed every minute. Nobody is denied, and the first replica's heap
// and goroutines stay as they are.
func TestSoak(t *testing.T) {
	if *soak == 0 {
		t.Skip("half an hour; make soak runs it") // without a length there is nothing to soak
	}
	ctx, b := t.Context(), cluster
	if err := b.rejections.begin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.failOpens.begin(ctx); err != nil {
		t.Fatal(err)
	}
	memory := watchMemory(ctx, b)
	start := time.Now()
	pods := startStream(ctx, b.Client(), steeredNamespace, soakRate)
	samples, kills, err := b.soakReplicas(ctx, start.Add(*soak), pods)
	if err != nil {
		t.Error(err)
	}
	if err := pods.Stop(ctx); err != nil {
		t.Error(err)
	}
	r := samples.result()
	peak, err := memory.stop()
	if err != nil {
		t.Error(err)
	}
	r.Seconds, r.Kills, r.PeakMemoryMiB = time.Since(start).Seconds(), kills, peak>>20
	for _, c := range pods.Since(time.Time{}) {
		r.Created++
		if c.Steering != "" {
			r.Steered++
		}
	}
	for _, counter := range []*tally{&b.rejections, &b.failOpens} {
		if err := counter.add(ctx); err != nil {
			t.Error(err)
		}
	}
	r.Denied, r.FailedOpen = max(len(pods.Denials()), b.rejections.sum), b.failOpens.sum
	if err := r.save(); err != nil {
		t.Error(err)
	}
	t.Logf("%+v", r)
	r.check(t)
}

func (r *soakResult) check(t *testing.T) {
	t.Helper()
	if r.Denied > 0 {
		t.Errorf("%d pods were denied", r.Denied)
	}
	if wanted := int(r.Seconds * soakRate / 2); r.Created < wanted || r.Steered < r.Created/2 {
		t.Errorf("%d pods were created and %d steered, want at least %d and half of them", r.Created, r.Steered, wanted)
	}
	if r.HeapLast > growth*r.HeapFirst+1 {
		t.Errorf("the heap grew from %.1f to %.1f MiB", r.HeapFirst, r.HeapLast)
	}
	if r.GoroutinesLast > growth*r.GoroutinesFirst+10 {
		t.Errorf("the goroutines grew from %.0f to %.0f", r.GoroutinesFirst, r.GoroutinesLast)
	}
}

// soakSamples are what was seen of the first replica, in order.
type soakSamples struct {
	heap, goroutines []float64
}

// soakReplicas kills and starts the second replica and looks at the first until
// the end.
func (b *bed) soakReplicas(ctx context.Context, end time.Time, pods *stream) (s soakSamples, kills int, err error) {
	first, second := b.installed.Replicas()[0], b.installed.Replicas()[1]
	for next := time.Now().Add(killInterval); time.Now().Before(end); {
		if !podstream.Pause(ctx, 2*time.Second) {
			return s, kills, ctx.Err()
		}
		metrics, err := first.Metrics(ctx)
		if err != nil {
			return s, kills, err
		}
		s.heap = append(s.heap, metrics.Sum("go_memstats_heap_inuse_bytes", nil)/(1<<20))
		s.goroutines = append(s.goroutines, metrics.Sum("go_goroutines", nil))
		if time.Now().Before(next) {
			continue
		}
		next = next.Add(killInterval)
		if err := second.Kill(); err != nil {
			return s, kills, err
		}
		if err := second.Start(ctx); err != nil {
			return s, kills, err
		}
		kills++
		tries, _ := pods.Unavailability()
		fmt.Printf("soak: %d pods created, %d denied, %d tries not served, %d kills, heap %.0f MiB, %.0f goroutines\n",
			len(pods.Since(time.Time{})), len(pods.Denials()), tries, kills, s.heap[len(s.heap)-1], s.goroutines[len(s.goroutines)-1])
	}
	return s, kills, nil
}

// result compares the thirds.
func (s *soakSamples) result() soakResult {
	third := len(s.heap) / 3
	return soakResult{
		HeapFirst: median(s.heap[:third]), HeapLast: median(s.heap[len(s.heap)-third:]),
		GoroutinesFirst: median(s.goroutines[:third]), GoroutinesLast: median(s.goroutines[len(s.goroutines)-third:]),
	}
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func (r *soakResult) save() error {
	path, err := reports.Path("soak.json")
	if err != nil {
		return err
	}
	return reports.Write(path, r)
}
