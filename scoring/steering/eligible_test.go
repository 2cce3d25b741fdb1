package steering

import (
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

func TestServedScheduler(t *testing.T) {
	cfg := config.Default()
	for name, want := range map[string]bool{"": true, "default-scheduler": true, "volcano": false} {
		if got := ServedScheduler(&cfg, name); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}
