package check

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// others are schedulers that place GPU pods, by the names of their Deployments.
var others = []string{
	"kai-scheduler", "volcano-scheduler", "hami-scheduler", "koord-scheduler", "yunikorn-scheduler", "runai-scheduler",
}

func checkOtherSchedulers(ctx context.Context, c *cluster) verdict {
	pods, err := c.pods(ctx)
	if err != nil {
		return unread("list pods", err)
	}
	enabled, err := c.enabled(ctx)
	if err != nil {
		return unread("list namespaces", err)
	}
	cfg := c.assumed(ctx)
	placed := map[string]int{} // scheduler -> GPU pods
	for i := range pods {
		pod := &pods[i]
		if (c.Pre || slices.Contains(enabled, pod.Namespace)) && !over(pod) &&
			asksForGPU(pod, cfg.Resources) && !steering.ServedScheduler(&cfg, pod.Spec.SchedulerName) {
			placed[pod.Spec.SchedulerName]++
		}
	}
	if len(placed) > 0 {
		var each []string
		for _, name := range sortedKeys(placed) {
			each = append(each, fmt.Sprintf("%s (%s)", name, terminal.Count(placed[name], "GPU pod")))
		}
		return warn("pods of %s are left alone", few(each)).
			fix("# only if it is kube-scheduler with another profile, in the configuration:",
				"schedulerNames: ["+strings.Join(append(slices.Clone(cfg.SchedulerNames), sortedKeys(placed)...), ", ")+"]")
	}
	if found := c.otherSchedulers(ctx); len(found) > 0 {
		return ok("%s is there, but places no GPU pods here", few(found))
	}
	return ok("none")
}

// otherSchedulers returns the names of other schedulers' Deployments, sorted; none
// if they may not be listed, since only their pods matter.
func (c *cluster) otherSchedulers(ctx context.Context) []string {
	all, err := c.deployments(ctx)
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for i := range all {
		for _, name := range others {
			if all[i].Name == name || strings.HasPrefix(all[i].Name, name+"-") || all[i].Labels[nameLabel] == name {
				found[name] = true
			}
		}
	}
	return sortedKeys(found)
}

// describeCommand prints what to set for a configuration file of kube-scheduler.
const describeCommand = "gpu-binpacker check --scheduler-config"

// checkScheduler says what is assumed. A scheduler's profile is not in the API; that
// it has a configuration file is, where the scheduler runs as a pod.
func checkScheduler(ctx context.Context, c *cluster) verdict {
	pods, err := c.pods(ctx)
	if err != nil {
		return unread("list pods", err)
	}
	model := c.assumed(ctx).Scheduler
	assumed := fmt.Sprintf("%s, NodeAffinity weight %d, default constraints %s",
		model.ScoringStrategy.Type, model.PluginWeights.NodeAffinity, model.DefaultConstraints)
	seen := false
	for i := range pods {
		pod := &pods[i]
		if pod.Namespace != "kube-system" || pod.Labels["component"] != "kube-scheduler" {
			continue
		}
		seen = true
		if file := schedulerConfig(pod); file != "" && sameProfile(model, config.Default().Scheduler) {
			return warn("kube-scheduler is started with the configuration file %s; if that changes score plugins, the section scheduler of gpu-binpacker's configuration must say so", file).
				detail("Assumed: "+assumed+".").
				fix("kubectl -n kube-system get pod "+pod.Name+" -o wide",
					"# with the file, which is on that node: prints what to set",
					describeCommand+" "+file)
		}
	}
	if !seen {
		return ok("%s; the scheduler's own profile is not visible here: if it has a configuration file, %s FILE prints what to set", assumed, describeCommand)
	}
	return ok("%s", assumed)
}

// sameProfile compares all but the version, which GB103 is about.
func sameProfile(a, b config.Scheduler) bool {
	a.KubernetesVersion = b.KubernetesVersion
	return reflect.DeepEqual(a, b)
}

// schedulerConfig is the file that kube-scheduler was started with.
func schedulerConfig(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		line := append(slices.Clone(pod.Spec.Containers[i].Command), pod.Spec.Containers[i].Args...)
		for n, word := range line {
			if file, found := strings.CutPrefix(word, "--config="); found {
				return file
			}
			if word == "--config" && n+1 < len(line) {
				return line[n+1]
			}
		}
	}
	return ""
}

func checkSpreading(ctx context.Context, c *cluster) verdict {
	cfg := c.assumed(ctx)
	switch {
	case cfg.Scheduler.DefaultConstraints == config.ConstraintsList:
		return warn("scheduler.defaultConstraints is List, so no constraint is added to pods, and the scheduler spreads them by its list").
			fix("# if the scheduler has no list of its own, in the configuration:", "scheduler:", "  defaultConstraints: System")
	case cfg.Spreading.Default == config.SpreadingKeep:
		return warn("spreading.default is Keep, so the scheduler spreads pods of ReplicaSets, StatefulSets and Services").
			fix("# in the configuration:", "spreading:", "  default: Neutralize")
	}
	return ok("for pods that are steered and ask for none")
}
