package check

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// optIn is the command that opts a namespace in.
func optIn(namespace string) string {
	return "kubectl label namespace " + namespace + " " + config.LabelEnabled + "=true"
}

// optOut removes the label.
func optOut(namespace string) string {
	return "kubectl label namespace " + namespace + " " + config.LabelEnabled + "-"
}

// enabled returns the namespaces in which the webhook is called, sorted.
func (c *cluster) enabled(ctx context.Context) ([]string, error) {
	all, err := c.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	_, webhook, err := c.webhook(ctx)
	if err != nil {
		webhook = nil // by the label alone
	}
	var enabled []string
	for i := range all {
		if takesPart(&all[i], webhook) && all[i].DeletionTimestamp == nil {
			enabled = append(enabled, all[i].Name)
		}
	}
	slices.Sort(enabled)
	return enabled, nil
}

// takesPart tells whether the webhook is called in a namespace.
func takesPart(namespace *corev1.Namespace, webhook *admissionregistrationv1.MutatingWebhook) bool {
	if webhook == nil {
		return namespace.Labels[config.LabelEnabled] == "true"
	}
	selector, err := metav1.LabelSelectorAsSelector(webhook.NamespaceSelector)
	if err != nil {
		return false
	}
	set := labels.Set{}
	for key, value := range namespace.Labels {
		set[key] = value
	}
	set[corev1.LabelMetadataName] = namespace.Name // as the API server has it
	return selector.Matches(set)
}

func checkOptedIn(ctx context.Context, c *cluster) verdict {
	enabled, err := c.enabled(ctx)
	if err != nil {
		return unread("list namespaces", err)
	}
	if len(enabled) == 0 {
		return warn("none, so no pod is steered").fix(optIn("NAMESPACE"))
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return ok("%s: %s", terminal.Count(len(enabled), "namespace"), few(enabled)).detail("How many GPU pods they hold cannot be told: list pods is needed.")
	}
	cfg := c.assumed(ctx)
	gpuPods, total := map[string]int{}, 0
	for i := range pods {
		if !over(&pods[i]) && slices.Contains(enabled, pods[i].Namespace) && asksForGPU(&pods[i], cfg.Resources) {
			gpuPods[pods[i].Namespace]++
			total++
		}
	}
	each := make([]string, len(enabled))
	for i, name := range enabled {
		each[i] = fmt.Sprintf("%s (%d)", name, gpuPods[name])
	}
	return ok("%s with %s: %s", terminal.Count(len(enabled), "namespace"), terminal.Count(total, "GPU pod"), few(each))
}

// over tells whether a pod has ended.
func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// checkExcluded finds labels without effect.
func checkExcluded(ctx context.Context, c *cluster) verdict {
	all, err := c.namespaces(ctx)
	if err != nil {
		return unread("list namespaces", err)
	}
	_, webhook, err := c.webhook(ctx)
	if err != nil {
		return needsWebhook(err)
	}
	var excluded, misspelt, fixes []string
	for i := range all {
		name, value := all[i].Name, all[i].Labels[config.LabelEnabled]
		switch {
		case takesPart(&all[i], webhook) || value == "false":
		case value == "true":
			excluded = append(excluded, name)
			fixes = append(fixes, optOut(name))
		default:
			misspelt = append(misspelt, fmt.Sprintf("%s (%q)", name, value))
			fixes = append(fixes, optIn(name)+" --overwrite")
		}
	}
	slices.Sort(excluded)
	slices.Sort(misspelt)
	slices.Sort(fixes)
	switch {
	case len(excluded) > 0:
		return warn("the webhook excludes %s, whatever the label says", few(excluded)).fix(fixes...)
	case len(misspelt) > 0:
		return warn(`only the value "true" opts in: %s`, few(misspelt)).fix(fixes...)
	}
	return ok("all %d", len(all))
}
