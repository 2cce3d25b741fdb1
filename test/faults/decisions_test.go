package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

const (
	// faultTag and faultVariable are those of cli/faults.go.
	faultTag      = "faults"
	faultVariable = "GPU_BINPACKER_FAULT_FILE"
)

// decisionFault makes every decision go wrong in the way that the content of the
// fault file says. The replicas run a binary that can do so, from before the row
// until after it. reason is what the webhook says about such pods.
func decisionFault(name string, short bool, content, reason string) fault {
	var undo []func()
	var pids []int
	return fault{
		name:  name,
		short: short,
		before: func(ctx context.Context, b *bed) (err error) {
			if undo, err = b.runFaultyBinary(ctx); err == nil {
				pids = b.pids()
			}
			return err
		},
		inject: func(_ context.Context, b *bed) error { return os.WriteFile(b.faultFile, []byte(content), 0o600) },
		shows: func(ctx context.Context, b *bed, since time.Time) (bool, error) {
			skipped, err := b.decisions(ctx, reason)
			if err != nil || skipped < podsPerSecond {
				return false, err
			}
			return unsteered(ctx, b, since)
		},
		end: func(_ context.Context, b *bed) error { return os.Remove(b.faultFile) },
		recovered: func(_ context.Context, b *bed, _ time.Time) (bool, error) {
			if now := b.pids(); !slices.Equal(now, pids) {
				return false, fmt.Errorf("the replicas were processes %v, now %v: one has ended", pids, now)
			}
			return true, nil
		},
		after: func(ctx context.Context, b *bed) error {
			for _, restore := range undo {
				restore()
			}
			return b.each(func(r *installation.Replica) error { return r.Restart(ctx) })
		},
	}
}

// runFaultyBinary builds the binary with the build tag and lets the replicas run
// it. Each of the returned functions gives a replica the shipped one back.
func (b *bed) runFaultyBinary(ctx context.Context) (undo []func(), err error) {
	program, err := faultyProgram()
	if err != nil {
		return nil, err
	}
	if err := program.Build(ctx, os.Stdout); err != nil {
		return nil, err
	}
	for _, replica := range b.installed.Replicas() {
		undo = append(undo, replica.Replace(program.Output, faultVariable+"="+b.faultFile))
	}
	return undo, b.each(func(r *installation.Replica) error { return r.Restart(ctx) })
}

func faultyProgram() (programs.Program, error) {
	root, err := programs.RepositoryRoot()
	return programs.Program{
		Name:    "gpu-binpacker-faults",
		Package: "github.com/gpu-binpacker/gpu-binpacker",
		Dir:     root,
		Output:  filepath.Join(root, "bin", "gpu-binpacker-faults"),
		Tags:    faultTag,
	}, err
}

// decisions is how many pods the replicas have left alone for a reason.
func (b *bed) decisions(ctx context.Context, reason string) (int, error) {
	sum := 0
	for _, replica := range b.installed.Replicas() {
		metrics, err := replica.Metrics(ctx)
		if err != nil {
			return 0, err
		}
		sum += int(metrics.Sum("gpu_binpacker_decisions_total", map[string]string{"reason": reason}))
	}
	return sum, nil
}

// The binary that is shipped cannot be made to fail, and the check can tell: it
// finds the variable in the other one.
func TestShippedBinaryHasNoFaults(t *testing.T) {
	program, err := faultyProgram()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Build(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	shipped := filepath.Join(filepath.Dir(program.Output), "gpu-binpacker")
	for path, want := range map[string]bool{shipped: false, program.Output: true} {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(content, []byte(faultVariable)); got != want {
			t.Errorf("%s contains %s: %v, want %v", path, faultVariable, got, want)
		}
	}
}
