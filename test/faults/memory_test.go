package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

// memoryInterval is how often memory is looked at. The kernel itself keeps the
// highest value of a process, so only one that ends can be missed by a little.
const memoryInterval = 100 * time.Millisecond

// readMemoryLimit returns the memory limit of the Deployment's container.
func (b *bed) readMemoryLimit(ctx context.Context) (int64, error) {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: config.SystemNamespace, Name: "gpu-binpacker"}
	if err := b.Client().Get(ctx, key, deployment); err != nil {
		return 0, fmt.Errorf("reading the Deployment: %w", err)
	}
	limit := deployment.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value()
	if limit == 0 {
		return 0, errors.New("the Deployment has no memory limit")
	}
	return limit, nil
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
				m.peak = max(m.peak, peakOf(pid))
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

// pids are the process IDs of the replicas that run.
func (b *bed) pids() []int {
	var pids []int
	for _, replica := range b.installed.Replicas() {
		if pid := replica.PID(); pid != 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// peakOf is the highest resident memory of a process, 0 when it cannot be read:
// the process has ended, or this is not Linux.
func peakOf(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, "VmHWM:"); found {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kilobytes << 10
		}
	}
	return 0
}
