package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/fakeapi"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/procfs"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/product"
	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

const (
	// listTimeout bounds a bare LIST.
	listTimeout = 5 * time.Minute
	// usualInterval is how often kubelets write a status that has not changed
	// (nodeStatusReportFrequency), stressInterval how often they look whether it has
	// (nodeStatusUpdateFrequency).
	usualInterval, stressInterval = 5 * time.Minute, 10 * time.Second
)

// bed is what is measured with.
type bed struct {
	options
	contents
	dir     string
	api     *fakeapi.Server
	started int
}

// start starts a gpu-binpacker and returns how long it took to be ready.
func (b *bed) start(ctx context.Context, nodes, pods int) (*product.Product, time.Duration, error) {
	b.started++
	dir := filepath.Join(b.dir, "gpu-binpacker-"+strconv.Itoa(b.started))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, 0, err
	}
	p, err := product.New(b.binary, dir, b.api.Kubeconfig())
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	if err := p.Start(ctx); err != nil {
		return nil, 0, errors.Join(err, p.Kill())
	}
	ready := time.Since(start)
	if err := p.CheckIndex(ctx, nodes, pods); err != nil {
		return nil, 0, errors.Join(err, p.Kill())
	}
	return p, ready, nil
}

// measureMemory measures an empty cluster and one of nodes, and fills it.
func (b *bed) measureMemory(ctx context.Context, r *result) error {
	if err := b.addNamespace(); err != nil {
		return err
	}
	empty, err := b.settledRSS(ctx, 0)
	if err != nil {
		return fmt.Errorf("memory in an empty cluster: %w", err)
	}
	progress("making %d nodes", r.Nodes)
	if err := b.addNodes(); err != nil {
		return err
	}
	withNodes, err := b.settledRSS(ctx, r.Nodes)
	if err != nil {
		return fmt.Errorf("memory with nodes: %w", err)
	}
	progress("making %d pods", r.Pods)
	if err := b.addPods(ctx); err != nil {
		return err
	}
	count, size := b.api.Bytes("nodes")
	r.NodeObjectBytes = float64(size) / float64(count)
	count, size = b.api.Bytes("pods")
	r.PodObjectBytes = float64(size) / float64(count)
	r.EmptyRSSMiB, r.BytesPerNode, r.nodesRSS = mebibytes(empty), float64(withNodes-empty)/float64(r.Nodes), withNodes
	return nil
}

// settledRSS returns the memory of a process that sees that many nodes and no pods.
func (b *bed) settledRSS(ctx context.Context, nodes int) (rss int64, err error) {
	p, _, err := b.start(ctx, nodes, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Kill()) }()
	progress("%d nodes, no pods: memory settles for %s", nodes, b.settle)
	if err := sleep(ctx, b.settle); err != nil {
		return 0, err
	}
	memory, err := procfs.MemoryOf(p.PID())
	return memory.RSS, err
}

// measureReady measures bare lists and the time to ready in turns, and returns the
// last process.
func (b *bed) measureReady(ctx context.Context, r *result) (*product.Product, error) {
	var lists, readies []float64
	for run := range b.runs {
		listed, err := b.bareList(ctx, r.Nodes, r.Pods)
		if err != nil {
			return nil, fmt.Errorf("listing all nodes and pods: %w", err)
		}
		p, ready, err := b.start(ctx, r.Nodes, r.Pods)
		if err != nil {
			return nil, err
		}
		lists, readies = append(lists, listed.Seconds()), append(readies, ready.Seconds())
		progress("run %d of %d: a bare list takes %.2f s, getting ready %.2f s", run+1, b.runs, listed.Seconds(), ready.Seconds())
		memory, err := procfs.MemoryOf(p.PID())
		if err != nil {
			return nil, errors.Join(err, p.Kill())
		}
		r.PeakRSSMiB = max(r.PeakRSSMiB, mebibytes(memory.Peak))
		if run == b.runs-1 {
			r.BareListSeconds, r.ReadySeconds = reports.Median(lists), reports.Median(readies)
			return p, nil
		}
		if err := p.Kill(); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("no runs")
}

// bareList lists everything in a process of its own, and returns how long that took
// from its start to its end.
func (b *bed) bareList(ctx context.Context, nodes, pods int) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "list", "-kubeconfig", b.api.Kubeconfig(), "-nodes", strconv.Itoa(nodes), "-pods", strconv.Itoa(pods))
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, errors.Join(err, errors.New(strings.TrimSpace(string(out))))
	}
	return time.Since(start), nil
}

// measureRunning measures memory when all has settled, and CPU while things change.
func (b *bed) measureRunning(ctx context.Context, p *product.Product, r *result) (err error) {
	progress("memory settles for %s", b.settle)
	if err := sleep(ctx, b.settle); err != nil {
		return err
	}
	memory, err := procfs.MemoryOf(p.PID())
	if err != nil {
		return err
	}
	r.RSSMiB = mebibytes(memory.RSS)
	r.BytesPerPod = float64(memory.RSS-r.nodesRSS) / float64(r.Pods)
	bare, stop, err := startWatch(ctx, b.api.Kubeconfig())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, m := range []struct {
		interval      time.Duration
		percent, bare *float64
	}{{usualInterval, &r.IdleCPUPercent, &r.BareIdleCPUPercent}, {stressInterval, &r.StressCPUPercent, &r.BareStressCPUPercent}} {
		progress("CPU for %s: the status of every node every %s, %.0f pod changes per second", b.cpu, m.interval, b.changes)
		if err := b.cpuPercent(ctx, m.interval, map[int]*float64{p.PID(): m.percent, bare: m.bare}); err != nil {
			return err
		}
		if memory, err = procfs.MemoryOf(p.PID()); err != nil {
			return err
		}
		r.PeakRSSMiB, r.BusyRSSMiB = max(r.PeakRSSMiB, mebibytes(memory.Peak)), max(r.BusyRSSMiB, mebibytes(memory.RSS))
	}
	if err := b.finishLife(); err != nil {
		return err
	}
	return b.waitIndex(ctx, p, r)
}

// cpuPercent measures how much of a core each process uses while things change.
func (b *bed) cpuPercent(ctx context.Context, interval time.Duration, percents map[int]*float64) (err error) {
	before := map[int]time.Duration{}
	for pid := range percents {
		if before[pid], err = procfs.CPU(pid); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := b.change(ctx, b.cpu, interval, b.changes); err != nil {
		return err
	}
	elapsed := time.Since(start)
	for pid, percent := range percents {
		after, err := procfs.CPU(pid)
		if err != nil {
			return err
		}
		*percent = 100 * float64(after-before[pid]) / float64(elapsed)
	}
	return nil
}

// waitIndex waits until the index has seen the last change: a process that lags
// behind would use little CPU.
func (b *bed) waitIndex(ctx context.Context, p *product.Product, r *result) error {
	const attempts, pause = 20, 100 * time.Millisecond
	var last error
	for range attempts {
		if last = p.CheckIndex(ctx, r.Nodes, r.Nodes*cluster.PodsPerNode); last == nil {
			return nil
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
	return fmt.Errorf("after the changes: %w", last)
}

func sleep(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
