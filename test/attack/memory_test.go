package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/procfs"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

const (
	// memoryInterval is how often memory is looked at. The kernel itself keeps the
	// highest value of a process, so only one that ends can be missed by a little.
	memoryInterval = 100 * time.Millisecond
	// collections is after how many garbage collections the heap is looked at: what
	// died during one is freed by the next.
	collections = 2
)

// readMemoryLimit reads the memory limit of the Deployment's container.
func (b *bed) readMemoryLimit(ctx context.Context) error {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: config.SystemNamespace, Name: "gpu-binpacker"}
	if err := b.Client().Get(ctx, key, deployment); err != nil {
		return fmt.Errorf("reading the Deployment: %w", err)
	}
	b.memoryLimit = deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
	if b.memoryLimit == 0 {
		return errors.New("the Deployment has no memory limit")
	}
	return nil
}

// memory watches the resident memory of the replicas.
type memory struct {
	cancel  context.CancelFunc
	running sync.WaitGroup
	peak    int64 // bytes; read it after stop
}

// watchMemory begins with new peaks.
func watchMemory(ctx context.Context, b *bed) *memory {
	ctx, cancel := context.WithCancel(ctx)
	m := &memory{cancel: cancel}
	for _, pid := range b.pids() {
		// 5 resets the kernel's peak, see proc_pid_clear_refs(5). Where that
		// does not work, the peak is that of an earlier row.
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
	}
	m.running.Go(func() {
		for {
			for _, pid := range b.pids() {
				if used, err := procfs.MemoryOf(pid); err == nil { // else it has ended
					m.peak = max(m.peak, used.Peak)
				}
			}
			if !podstream.Pause(ctx, memoryInterval) {
				return
			}
		}
	})
	return m
}

// stop returns the highest value. On Linux, where it can be read, none at all is an error:
// a limit that nothing was compared with holds nothing.
func (m *memory) stop() (int64, error) {
	m.cancel()
	m.running.Wait()
	if m.peak == 0 && runtime.GOOS == "linux" {
		return 0, errors.New("the memory of no replica could be read")
	}
	return m.peak, nil
}

// pids are the process IDs of the replicas, 0 for one that has ended.
func (b *bed) pids() (pids []int) {
	for _, replica := range b.installed.Replicas() {
		pids = append(pids, replica.PID())
	}
	return pids
}

// inUse is how many bytes of the heap each replica has in use just after a garbage
// collection, if the row looks at that.
func (b *bed) inUse(ctx context.Context, a attack) ([]float64, error) {
	if a.keepMiB == 0 {
		return nil, nil
	}
	replicas := b.installed.Replicas()
	heaps := make([]float64, len(replicas))
	var group sync.WaitGroup
	errs := make([]error, len(replicas))
	for n, replica := range replicas {
		group.Go(func() { heaps[n], errs[n] = heapOf(ctx, replica) })
	}
	group.Wait()
	return heaps, errors.Join(errs...)
}

// heapOf scrapes a replica, which takes memory, until the garbage collector has run, and
// returns the least that was in use since.
func heapOf(ctx context.Context, replica *installation.Replica) (heap float64, err error) {
	first := -1
	err = wait(ctx, "the garbage collector of "+replica.Name(), func(ctx context.Context) (bool, error) {
		for range 20 { // more than one in an interval
			metrics, err := replica.Metrics(ctx)
			if err != nil {
				return false, err
			}
			now := collected(metrics)
			if first < 0 {
				first = now
			}
			if now >= first+collections {
				heap = metrics.Sum("go_memstats_heap_alloc_bytes", nil)
				return true, nil
			}
		}
		return false, nil
	})
	return heap, err
}

// collected is how often the garbage collector has run.
func collected(metrics controlplane.Metrics) int {
	for _, metric := range metrics["go_gc_duration_seconds"].GetMetric() {
		return int(metric.GetSummary().GetSampleCount())
	}
	return 0
}

// mostGrown is by how many MiB the replica has grown that has grown most, 0 for none.
func mostGrown(before, after []float64) (most float64) {
	for n := range min(len(before), len(after)) {
		most = max(most, mebibytes(int64(after[n]-before[n])))
	}
	return most
}

func mebibytes(bytes int64) float64 { return float64(bytes>>10) / 1024 }
