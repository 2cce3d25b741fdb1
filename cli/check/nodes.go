package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// offer is how much of a resource nodes offer.
type offer struct {
	nodes int
	units int64
}

// offeredGPUs returns what nodes offer of the configured resources, name -> offer.
func offeredGPUs(nodes []corev1.Node, resources config.Resources) map[string]offer {
	offered := map[string]offer{}
	for i := range nodes {
		for name, quantity := range nodes[i].Status.Allocatable {
			if resources.IsGPU(string(name)) && quantity.Sign() > 0 {
				o := offered[string(name)]
				offered[string(name)] = offer{nodes: o.nodes + 1, units: o.units + quantity.Value()}
			}
		}
	}
	return offered
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func checkNodes(ctx context.Context, c *cluster) verdict {
	nodes, err := c.nodes(ctx)
	if err != nil {
		return unread("list nodes", err)
	}
	offered := offeredGPUs(nodes, c.assumed(ctx).Resources)
	if len(offered) == 0 {
		return warn("none of %s offers a configured GPU resource; is the device plugin running, or are there no GPU nodes now?", terminal.Count(len(nodes), "node")).
			fix("# see Allocatable", "kubectl describe nodes")
	}
	var each []string
	for _, name := range sortedKeys(offered) {
		each = append(each, fmt.Sprintf("%d %s on %s", offered[name].units, name, terminal.Count(offered[name].nodes, "node")))
	}
	return ok("%s", few(each))
}

// accelerators are parts of resource names that vendors use for accelerators.
var accelerators = []string{"gpu", "npu", "tpu", "xpu", "dcu", "mlu", "gaudi", "neuron", "ascend", "accelerator", "mig-"}

// looksLikeAccelerator tells whether a resource name is that of a device plugin for
// whole accelerators: monitoring names and amounts of memory or cores are not.
func looksLikeAccelerator(name string) bool {
	domain, rest, found := strings.Cut(strings.ToLower(name), "/")
	if !found || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		return false
	}
	for _, no := range []string{"monitoring", "mem", "core"} {
		if strings.Contains(rest, no) {
			return false
		}
	}
	for _, part := range accelerators {
		if strings.Contains(rest, part) || strings.HasPrefix(domain, part+".") {
			return true
		}
	}
	return false
}

// checkResourceNames looks for accelerators that are in use and not configured.
func checkResourceNames(ctx context.Context, c *cluster) verdict {
	nodes, err := c.nodes(ctx)
	if err != nil {
		return unread("list nodes", err)
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return unread("list pods", err)
	}
	enabled, err := c.enabled(ctx)
	if err != nil {
		return unread("list namespaces", err)
	}
	resources := c.assumed(ctx).Resources
	unknown := map[string]int{} // name -> pods that ask for it
	for i := range pods {
		if c.Pre || slices.Contains(enabled, pods[i].Namespace) {
			for _, name := range unknownAccelerators(&pods[i], nodes, resources) {
				unknown[name]++
			}
		}
	}
	names := sortedKeys(unknown)
	if len(names) == 0 {
		return ok("pods ask for no others")
	}
	each := make([]string, len(names))
	for i, name := range names {
		each[i] = fmt.Sprintf("%s (%s)", name, terminal.Count(unknown[name], "pod"))
	}
	fixes := []string{"# in the configuration, then see GB303", "resources:", "  names:"}
	for _, name := range append(slices.Clone(resources.Names), names...) {
		fixes = append(fixes, "  - "+name)
	}
	return warn("pods ask for %s, which look like accelerators and are not configured", few(each)).fix(fixes...)
}

// unknownAccelerators returns what a pod asks for that looks like an accelerator,
// is offered by a node and is not configured, sorted.
func unknownAccelerators(pod *corev1.Pod, nodes []corev1.Node, resources config.Resources) []string {
	asked := map[string]bool{}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for name := range containers[i].Resources.Limits {
				if !resources.IsGPU(string(name)) && looksLikeAccelerator(string(name)) && offeredBy(nodes, name) {
					asked[string(name)] = true
				}
			}
		}
	}
	return sortedKeys(asked)
}

func offeredBy(nodes []corev1.Node, name corev1.ResourceName) bool {
	return slices.ContainsFunc(nodes, func(node corev1.Node) bool {
		quantity := node.Status.Allocatable[name]
		return quantity.Sign() > 0
	})
}
