package check

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	// affinityPlugin evicts pods that are not on the node their affinity names.
	affinityPlugin = "RemovePodsViolatingNodeAffinity"
	// preferredType makes it go by preferred terms too.
	preferredType = "preferredDuringSchedulingIgnoredDuringExecution"
)

// deschedulerNamespaces are where the descheduler's manifests, its chart and its
// operator put the policy. Where it is labelled, it is found everywhere.
var deschedulerNamespaces = []string{"kube-system", "descheduler", "openshift-kube-descheduler-operator"}

// deschedulerPolicy is of both versions of a DeschedulerPolicy what matters here.
type deschedulerPolicy struct {
	Kind     string `json:"kind"`
	Profiles []struct {
		PluginConfig []struct {
			Name string             `json:"name"`
			Args deschedulerOptions `json:"args"`
		} `json:"pluginConfig"`
		Plugins struct {
			Deschedule struct {
				Enabled []string `json:"enabled"`
			} `json:"deschedule"`
		} `json:"plugins"`
	} `json:"profiles"`
	Strategies map[string]struct {
		Enabled bool               `json:"enabled"`
		Params  deschedulerOptions `json:"params"`
	} `json:"strategies"`
}

type deschedulerOptions struct {
	NodeAffinityType []string `json:"nodeAffinityType"`
	Namespaces       *struct {
		Include []string `json:"include"`
		Exclude []string `json:"exclude"`
	} `json:"namespaces"`
}

// reached returns which of the namespaces the plugin's evictions reach, if it goes
// by preferred terms.
func (o deschedulerOptions) reached(namespaces []string) []string {
	if !slices.Contains(o.NodeAffinityType, preferredType) {
		return nil
	}
	var reached []string
	for _, name := range namespaces {
		out := o.Namespaces != nil && (slices.Contains(o.Namespaces.Exclude, name) ||
			len(o.Namespaces.Include) > 0 && !slices.Contains(o.Namespaces.Include, name))
		if !out {
			reached = append(reached, name)
		}
	}
	return reached
}

// reached returns which of the namespaces the policy's evictions by preferred terms
// reach, sorted.
func (p deschedulerPolicy) reached(namespaces []string) []string {
	found := map[string]bool{}
	note := func(o deschedulerOptions) {
		for _, name := range o.reached(namespaces) {
			found[name] = true
		}
	}
	for _, profile := range p.Profiles {
		if !slices.Contains(profile.Plugins.Deschedule.Enabled, affinityPlugin) {
			continue
		}
		for _, plugin := range profile.PluginConfig {
			if plugin.Name == affinityPlugin {
				note(plugin.Args)
			}
		}
	}
	if strategy := p.Strategies[affinityPlugin]; strategy.Enabled {
		note(strategy.Params)
	}
	return sortedKeys(found)
}

func checkDescheduler(ctx context.Context, c *cluster) verdict {
	configMaps, err := c.policyConfigMaps(ctx)
	if err != nil {
		return unread("list configmaps in "+strings.Join(deschedulerNamespaces, ", "), err)
	}
	enabled, err := c.enabled(ctx)
	if err != nil {
		return unread("list namespaces", err)
	}
	nobody := len(enabled) == 0
	if nobody {
		enabled = []string{"every namespace"} // that is not excluded by name
	}
	policies := 0
	for i := range configMaps {
		for _, key := range sortedKeys(configMaps[i].Data) {
			var policy deschedulerPolicy
			if yaml.Unmarshal([]byte(configMaps[i].Data[key]), &policy) != nil || policy.Kind != "DeschedulerPolicy" {
				continue
			}
			policies++
			reached := policy.reached(enabled)
			if len(reached) == 0 {
				continue
			}
			name := configMaps[i].Namespace + "/" + configMaps[i].Name
			text := name + ": " + affinityPlugin + " with the preferred type evicts steered pods from " + few(reached) + ", again and again"
			v := fail("%s", text)
			if nobody || c.assumed(ctx).Weights.Weighting == config.WeightingEqual {
				v = warn("%s", text)
			}
			return v.fix("kubectl -n "+configMaps[i].Namespace+" edit configmap "+configMaps[i].Name,
				"# remove "+preferredType,
				"# or exclude the namespaces: docs/compatibility.md#descheduler")
		}
	}
	if policies == 0 {
		return ok("no policy of it was found")
	}
	return ok("%s looked at", terminal.Count(policies, "ConfigMap"))
}

// policyConfigMaps returns the ConfigMaps that may hold a policy, sorted.
func (c *cluster) policyConfigMaps(ctx context.Context) ([]corev1.ConfigMap, error) {
	found := map[string]corev1.ConfigMap{}
	read := func(namespace string, options metav1.ListOptions) error {
		list, err := c.Kubernetes.CoreV1().ConfigMaps(namespace).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			found[list.Items[i].Namespace+"/"+list.Items[i].Name] = list.Items[i]
		}
		return nil
	}
	// Needs more rights than a user of a few namespaces has.
	err := read(metav1.NamespaceAll, metav1.ListOptions{LabelSelector: nameLabel + "=descheduler"})
	if err != nil && !apierrors.IsForbidden(err) {
		return nil, err
	}
	for _, namespace := range deschedulerNamespaces {
		if err := read(namespace, metav1.ListOptions{}); err != nil {
			return nil, err
		}
	}
	configMaps := make([]corev1.ConfigMap, 0, len(found))
	for _, key := range sortedKeys(found) {
		configMaps = append(configMaps, found[key])
	}
	return configMaps, nil
}

// karpenterOldest is the first version that provisions for pods with preferred
// node-affinity terms.
var karpenterOldest = version.MustParseGeneric("1.5")

func checkKarpenter(ctx context.Context, c *cluster) verdict {
	all, err := c.deployments(ctx)
	if err != nil {
		return unread("list deployments", err)
	}
	deployment := named(all, "karpenter")
	if deployment == nil {
		return ok("there is none")
	}
	show := "kubectl -n " + deployment.Namespace + " get deployment " + deployment.Name + " -o wide"
	for _, candidate := range versionsOf(deployment) {
		v, err := version.ParseGeneric(candidate)
		if err != nil {
			continue
		}
		if v.LessThan(karpenterOldest) {
			return warn("it is %s, which makes no nodes for pods with preferred node-affinity terms: upgrade it, or do not opt in", v).fix(show)
		}
		return ok("%s", v)
	}
	return warn("Deployment %s/%s does not tell its version", deployment.Namespace, deployment.Name).fix(show)
}

// versionsOf returns what may be the version of a Deployment, the surest first.
func versionsOf(deployment *appsv1.Deployment) []string {
	versions := []string{deployment.Labels["app.kubernetes.io/version"]}
	for i := range deployment.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(deployment.Spec.Template.Spec.Containers[i].Image, "@")
		image = image[strings.LastIndex(image, "/")+1:]
		if _, tag, found := strings.Cut(image, ":"); found {
			versions = append(versions, tag)
		}
	}
	return versions
}
