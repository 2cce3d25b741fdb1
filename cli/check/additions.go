package check

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// addition is one kind of what a pod may get of us.
type addition struct {
	name string
	// take puts it from a pod that has been through the webhook onto one that has not, and
	// is false when the first has none.
	take func(to, from *corev1.Pod) bool
	// instead is what in the configuration leaves it out, empty where nothing does.
	instead string
}

// letPass is the fix on the policy's side.
const letPass = "# or let the policy pass it: docs/compatibility.md#policies"

// additions are all kinds. Together they are everything that a patch of ours changes.
var additions = []addition{
	{"preferred node affinity", takeNodeAffinity, ""},
	{"the topology spread constraint", takeConstraints, "spreading:\n  default: Keep"},
	{"preferred pod affinity", takePodAffinity, "lateSteering:\n  mode: \"Off\""},
	{"the label " + config.LabelLate, takeLabels, "lateSteering:\n  mode: \"Off\""},
	{"annotations " + config.Domain + "/...", takeAnnotations, ""},
}

func takeNodeAffinity(to, from *corev1.Pod) bool {
	if from.Spec.Affinity == nil || from.Spec.Affinity.NodeAffinity == nil {
		return false
	}
	affinityOf(to).NodeAffinity = from.Spec.Affinity.NodeAffinity
	return true
}

func takePodAffinity(to, from *corev1.Pod) bool {
	if from.Spec.Affinity == nil || from.Spec.Affinity.PodAffinity == nil {
		return false
	}
	affinityOf(to).PodAffinity = from.Spec.Affinity.PodAffinity
	return true
}

func affinityOf(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	return pod.Spec.Affinity
}

func takeConstraints(to, from *corev1.Pod) bool {
	to.Spec.TopologySpreadConstraints = from.Spec.TopologySpreadConstraints
	return len(from.Spec.TopologySpreadConstraints) > 0
}

func takeLabels(to, from *corev1.Pod) bool {
	to.Labels = merged(to.Labels, from.Labels)
	return len(from.Labels) > 0
}

func takeAnnotations(to, from *corev1.Pod) bool {
	to.Annotations = merged(to.Annotations, from.Annotations)
	return len(from.Annotations) > 0
}

func merged(a, b map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for key, value := range m {
			all[key] = value
		}
	}
	return all
}

// remedies are the commands that opt the namespaces out and, where what is refused can be
// left out, the settings that do so.
func remedies(namespaces []string, refused []bool) []string {
	var lines, settings []string
	for _, namespace := range namespaces {
		lines = append(lines, optOut(namespace))
	}
	lines = append(lines, letPass)
	for i := range additions {
		switch instead := additions[i].instead; {
		case !refused[i] || slices.Contains(settings, instead):
		case instead == "":
			return lines // without the others the pods would still be refused
		default:
			settings = append(settings, instead)
		}
	}
	if len(settings) > 0 {
		lines = append(lines, "# or leave it out, in the configuration:")
	}
	return append(lines, settings...)
}
