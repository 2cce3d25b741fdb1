package system

import (
	"context"
	"io"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// Names of the scheduler profiles.
const (
	defaultProfile       = corev1.DefaultSchedulerName
	mostAllocatedProfile = "most-allocated"
	pluginProfile        = "origin-plugin"
)

// originScheduler is the component that runs the origin's plugin.
const originScheduler = "origin-scheduler"

// stockProfiles are kube-scheduler's default profile, and one that packs as
// managed clusters offer it: NodeResourcesFit with MostAllocated on CPU, memory
// and GPUs. GPUs weigh five times as much as CPU, so that they decide; everything
// else, spreading too, is left at its default.
const stockProfiles = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: ` + defaultProfile + `
- schedulerName: ` + mostAllocatedProfile + `
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources:
        - {name: cpu, weight: 1}
        - {name: memory, weight: 1}
        - {name: nvidia.com/gpu, weight: 5}
`

// pluginProfileConfig is the origin's rule inside the scheduler, with what would
// spread switched off: LeastAllocated, BalancedAllocation and the default
// topology spread constraints. Their filters stay. Its weight of 100 outvotes
// what is left.
const pluginProfileConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: ` + pluginProfile + `
  plugins:
    score:
      disabled:
      - name: NodeResourcesFit
      - name: NodeResourcesBalancedAllocation
      - name: PodTopologySpread
      enabled:
      - name: OriginBinPacking
        weight: 100
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints: []
`

// stockScheduler is kube-scheduler with its own plugins.
func stockScheduler() controlplane.Scheduler {
	return controlplane.Scheduler{Config: []byte(stockProfiles)}
}

// pluginScheduler builds and describes the scheduler with the origin's plugin.
func pluginScheduler(ctx context.Context, out io.Writer) (controlplane.Scheduler, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return controlplane.Scheduler{}, err
	}
	program := programs.Program{
		Name:    originScheduler,
		Package: "github.com/gpu-binpacker/gpu-binpacker/test/bench/originscheduler",
		Dir:     filepath.Join(root, "test"),
		Output:  filepath.Join(root, "bin", originScheduler),
	}
	if err := program.Build(ctx, out); err != nil {
		return controlplane.Scheduler{}, err
	}
	return controlplane.Scheduler{Name: originScheduler, Binary: program.Output, Config: []byte(pluginProfileConfig)}, nil
}
