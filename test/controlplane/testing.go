package controlplane

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// startTimeout is how long StartForTest may take, building excluded when it is
// done beforehand, as make does.
const startTimeout = 5 * time.Minute

// StartForTest starts a control plane that the end of the test stops. What the
// control plane says goes to the test's log; when the test has failed, its
// directory is kept and named there.
func StartForTest(t testing.TB, options Options) *ControlPlane {
	t.Helper()
	if options.Log == nil {
		options.Log = t.Output()
	}
	if options.Binaries == (programs.Binaries{}) {
		options.Binaries = buildForTest(t, options.Log)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	cp, err := Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			cp.KeepDir()
		}
		if err := cp.Stop(); err != nil {
			t.Error(err)
		}
	})
	return cp
}

// buildForTest builds the binaries in the time that the test's deadline leaves.
func buildForTest(t testing.TB, out io.Writer) programs.Binaries {
	t.Helper()
	binaries, err := programs.Build(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	return binaries
}
