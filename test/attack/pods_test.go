package attack

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// Sizes of the attackers' pods. All are below what the API server or the webhook
// refuses outright: 3 MiB and 1 MiB, for annotations 256 KiB, and 1.5 MiB in etcd.
const (
	annotationBytes = 250_000
	// resourceNames: the time that the API server takes for them grows with the square.
	resourceNames = 2_000
	// fieldValues of 17 bytes are just below 1 MiB.
	fieldValues = 52_000
	// longTexts of longTextBytes are so many as well.
	longTexts, longTextBytes = 90, 10_000
	// preferredTerms with expressionsPerTerm each are 0.9 MB.
	preferredTerms, expressionsPerTerm = 100, 200
	// forgedNames is above the 500 parts of our shape that the webhook deals with.
	forgedNames = 600
)

// nobody is a scheduler that does not run: pods of it stay pending, and what they ask
// for makes no work but for the API server and those who watch.
const nobody = "nobody"

// gpuPod asks for so many GPUs and nothing else.
func gpuPod(gpus int64) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "main:1",
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(gpus, resource.DecimalSI)}},
	}}}}
}

// swollenAnnotations fills one of the annotations that we read, each time with
// something else. Every second pod asks for a GPU, but not from us: we would replace
// the annotation.
func swollenAnnotations(n int) *corev1.Pod {
	pod := gpuPod(int64(n % 2))
	pod.Labels = map[string]string{config.LabelEnabled: "false"}
	pod.Spec.SchedulerName = nobody
	keys := []string{config.AnnotationSteering, config.AnnotationTarget, config.AnnotationAdmission}
	pod.Annotations = map[string]string{keys[n%len(keys)]: fmt.Sprintf("%09d", n) + strings.Repeat("x", annotationBytes-9)}
	return pod
}

// manyResources asks for extended resources that nobody has heard of, each pod for
// others. Every fourth is for the webhook to look at, and refused later.
func manyResources(n int) *corev1.Pod {
	pod := gpuPod(int64(n % 2))
	pod.Spec.SchedulerName = nobody
	if n%4 == 3 {
		pod = invalid(gpuPod(1))
	}
	limits := pod.Spec.Containers[0].Resources.Limits
	for i := range resourceNames {
		limits[corev1.ResourceName(fmt.Sprintf("n%d/%d", n, i))] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return pod
}

// invalid makes the API server refuse the pod after it has called the webhook, so that
// neither etcd nor the scheduler has to do with it.
func invalid(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.DNSPolicy = "Invalid"
	return pod
}

// hugeConstraints demands of its node more than anybody could check, in turn by fields, by
// labels and by tolerations. Values of a field and texts as long as these are invalid, but
// the API server says so only after it has called the webhook.
func hugeConstraints(n int) *corev1.Pod {
	pod := invalid(gpuPod(1))
	long := func(i int) string { return fmt.Sprintf("%d-%d-", n, i) + strings.Repeat("x", longTextBytes) }
	switch n % 3 {
	case 0:
		values := make([]string, fieldValues)
		for i := range values {
			values[i] = fmt.Sprintf("%08d-%08d", n, i)
		}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}}},
				{MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: values}}},
			}},
		}}
	case 1:
		pod.Spec.NodeSelector = map[string]string{}
		for i := range longTexts {
			pod.Spec.NodeSelector[fmt.Sprintf("k%d", i)] = long(i)
		}
	case 2:
		for i := range longTexts {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: fmt.Sprintf("k%d", i), Value: long(i)})
		}
	}
	return pod
}

// hugePreferences wishes for more than anybody could compare.
func hugePreferences(n int) *corev1.Pod {
	pod := invalid(gpuPod(1))
	terms := make([]corev1.PreferredSchedulingTerm, preferredTerms)
	for i := range terms {
		terms[i].Weight = int32(i%100 + 1)
		for j := range expressionsPerTerm {
			// All but the last hold on every node, so that each has to be looked at.
			terms[i].Preference.MatchExpressions = append(terms[i].Preference.MatchExpressions, corev1.NodeSelectorRequirement{
				Key: fmt.Sprintf("k%d-%d", n, j), Operator: corev1.NodeSelectorOpDoesNotExist,
			})
		}
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
	return pod
}

// oneKind is like all others.
func oneKind(int) *corev1.Pod { return kind(0) }

// newKind is like no other.
func newKind(n int) *corev1.Pod { return kind(n) }

// kindsInTurn are one more than the kinds that the index keeps pools for.
func kindsInTurn(n int) *corev1.Pod { return kind(n % 65) }

// kind is a pod of a kind of its own by what it tolerates, which no node asks for.
func kind(n int) *corev1.Pod {
	pod := gpuPod(1)
	pod.Spec.Tolerations = []corev1.Toleration{{Key: fmt.Sprintf("example.com/kind-%d", n), Operator: corev1.TolerationOpExists}}
	return pod
}

// eightGPUs takes a whole node of the shared pool.
func eightGPUs(int) *corev1.Pod {
	pod := gpuPod(8)
	pod.Spec.NodeSelector = map[string]string{poolLabel: sharedPool}
	return pod
}

// refusedByNodes walks through the shared pool: three pods in a row are for one node,
// where they are refused, as pods are that no kubelet could take, because of their
// shape, say.
func refusedByNodes(n int) *corev1.Pod {
	pod := gpuPod(1)
	pod.Annotations = map[string]string{controlplane.RefusedAnnotation: "UnexpectedAdmissionError"}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: sharedNode(n / 3)}
	return pod
}

// forgedTerms looks like a pod that we have steered to a whole node of the shared pool,
// each to another one.
func forgedTerms(n int) *corev1.Pod {
	pod := eightGPUs(n)
	pod.Annotations = map[string]string{
		config.AnnotationSteering: config.SteeringRanked, config.AnnotationTarget: sharedNode(n),
		config.AnnotationAdmission: string(uuid.NewUUID()),
	}
	terms := make([]corev1.PreferredSchedulingTerm, forgedNames)
	for i := range terms {
		terms[i] = corev1.PreferredSchedulingTerm{Weight: int32(100 - i*99/forgedNames), Preference: corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{
				{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{sharedNode(n + i)}},
			},
		}}
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
	return pod
}

// sharedNode is the name of a node of the shared pool, of which the numbers go round.
func sharedNode(n int) string { return fmt.Sprintf("%s-%04d", sharedPool, n%sharedNodes) }
