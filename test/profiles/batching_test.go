//go:build profiles

package profiles

import (
	"strings"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// Opportunistic batching, on since Kubernetes 1.35, lets a pod that is like the last
// one go by the scores of the last one; since 1.37 that one's node is scored again. It
// applies only where no spreading of any kind does: with defaultingType List and no
// constraints, to pods without constraints of their own. So it does to ours with
// defaultConstraints: List, and not with System, since then they get one. Either way
// they are packed.
func TestOpportunisticBatching(t *testing.T) {
	file := read(t, "list-empty")
	for _, constraints := range []string{"List", "System"} {
		t.Run(constraints, func(t *testing.T) {
			schedulerWith(t, file)
			c := installed(t, configuration([]byte("scheduler: {defaultConstraints: "+constraints+"}\n")))
			for _, s := range []scenario.Scenario{scenario.Burst(), scenario.OneByOne()} {
				for _, steered := range []bool{false, true} {
					applies := !steered || constraints == "List"
					before := hints(t)
					used := play(t, c, s, "batching-"+strings.ToLower(constraints)+"-"+s.Name, steered)
					reused := hints(t) - before
					if want := map[bool]int{false: s.Nodes, true: s.Ideal}[steered]; used != want {
						t.Errorf("%s, steered %v: %d nodes used, want %d", s.Name, steered, used, want)
					}
					if (reused > 0) != applies {
						t.Errorf("%s, steered %v: %d pods went by reused scores; batching applies: %v", s.Name, steered, reused, applies)
					}
					t.Logf("| %s | %s | steered %v | %d of %d nodes | %d of 64 pods by reused scores |", constraints, s.Name, steered, used, s.Nodes, reused)
				}
			}
		})
	}
}

// hints is how many pods went where reused scores said, since the scheduler started.
func hints(t *testing.T) int {
	t.Helper()
	metrics, err := cp.Metrics(t.Context(), controlplane.KubeScheduler)
	if err != nil {
		t.Fatal(err)
	}
	return int(metrics.Sum("scheduler_batch_attempts_total", map[string]string{"result": "hint_used"}))
}
