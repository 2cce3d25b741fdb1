package installation

import (
	"context"
	"testing"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// installTimeout is how long InstallForTest may take, with a build of the
// product.
const installTimeout = 5 * time.Minute

// InstallForTest installs gpu-binpacker; the end of the test stops it.
func InstallForTest(t testing.TB, cp *controlplane.ControlPlane, options Options) *Installation {
	t.Helper()
	if options.Log == nil {
		options.Log = t.Output()
	}
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	installed, err := Install(ctx, cp, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := installed.Stop(); err != nil {
			t.Error(err)
		}
	})
	return installed
}
