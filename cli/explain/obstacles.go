package explain

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// excludedNamespaces are never called for, whatever their labels: those of the
// namespaceSelector in the manifests.
var excludedNamespaces = []string{"kube-system", "cert-manager", config.SystemNamespace}

// call says whether the API server would call the webhook for a pod.
func (c *Cluster) call(pod *corev1.Pod) Call {
	call := Call{Called: true}
	for _, o := range c.obstacles(pod) {
		call.Called = false
		call.Because = append(call.Because, o.because)
		call.Fixes = append(call.Fixes, o.fix)
	}
	return call
}

// obstacle is why the API server would not call the webhook, and what to do.
type obstacle struct{ because, fix string }

// obstacles checks what the API server checks before it calls the webhook.
func (c *Cluster) obstacles(pod *corev1.Pod) []obstacle {
	var all []obstacle
	if c.Uninstalled {
		all = append(all, obstacle{"gpu-binpacker is not installed in this cluster", "install it, as its README says"})
	}
	switch {
	case slices.Contains(excludedNamespaces, pod.Namespace):
		all = append(all, obstacle{
			"namespace " + pod.Namespace + " is excluded in the webhook's namespaceSelector",
			"create the pod in another namespace",
		})
	case !c.State.Enabled(pod.Namespace):
		all = append(all, obstacle{
			"namespace " + pod.Namespace + " has not opted in",
			"kubectl label namespace " + pod.Namespace + " " + config.LabelEnabled + "=true",
		})
	}
	if pod.Labels[config.LabelEnabled] == "false" {
		all = append(all, obstacle{
			"the pod has opted out",
			"remove the label " + config.LabelEnabled + " from the metadata of the pod or of its template",
		})
	}
	if !limitsGPU(pod, c.Config.Resources) {
		all = append(all, noGPU(pod, c.Config.Resources))
	}
	return all
}

// limitsGPU is the webhook's matchCondition.
func limitsGPU(pod *corev1.Pod, gpus config.Resources) bool {
	return slices.ContainsFunc(limits(pod), gpus.IsGPU)
}

// limits are the names of all resources with a limit, sorted.
func limits(pod *corev1.Pod) []string {
	var names []string
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for name := range containers[i].Resources.Limits {
				names = append(names, string(name))
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noGPU explains a pod without a configured GPU. Another extended resource may
// be one.
func noGPU(pod *corev1.Pod, gpus config.Resources) obstacle {
	o := obstacle{
		"the pod asks for no configured GPU resource",
		"add one to resources.limits of a container; configured are " + strings.Join(gpuNames(gpus), ", "),
	}
	for _, name := range limits(pod) {
		if domain, _, ok := strings.Cut(name, "/"); ok && !strings.HasSuffix(domain, "kubernetes.io") {
			o.because += ", though for " + name
			o.fix = "if " + name + " is a GPU, add it to resources.names in the configuration and apply what `gpu-binpacker match-conditions` prints"
			break
		}
	}
	return o
}

func gpuNames(gpus config.Resources) []string {
	names := slices.Clone(gpus.Names)
	for _, prefix := range gpus.Prefixes {
		names = append(names, prefix+"*")
	}
	return names
}
