package webhook

import (
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Reasons of this package, beside those of package scoring.
const (
	// ReasonNotPodCreate: not the creation of a pod.
	ReasonNotPodCreate steering.Reason = "NotPodCreate"
	// ReasonUndecodable: the object does not decode as a pod; the API server
	// will judge it.
	ReasonUndecodable steering.Reason = "Undecodable"
	// ReasonBound: spec.nodeName is set, the scheduler is not asked.
	ReasonBound steering.Reason = "Bound"
	// ReasonNodePod: a mirror, DaemonSet or node-owned pod; its node is given.
	ReasonNodePod steering.Reason = "NodePod"
	// ReasonOtherScheduler: spec.schedulerName is not one that we serve.
	ReasonOtherScheduler steering.Reason = "OtherScheduler"
	// ReasonGated: scheduling gates; a ranking would be stale when they open.
	ReasonGated steering.Reason = "Gated"
	// ReasonOptedOut: the pod carries the opt-out label.
	ReasonOptedOut steering.Reason = "OptedOut"
	// ReasonPodGroup: a plain pod of a Kueue group, whose pods must stay alike.
	ReasonPodGroup steering.Reason = "PodGroup"
	// ReasonSpread: the user asks for the pods to be spread.
	ReasonSpread steering.Reason = "Spread"
	// ReasonPatch: the patch did not apply or was invalid; a bug, counted.
	ReasonPatch steering.Reason = "PatchRejected"
	// ReasonPanic: a panic while deciding; a bug, counted.
	ReasonPanic steering.Reason = "Panic"
)

// Labels and annotations of others, by which pods are recognised.
const (
	kueuePodGroupLabel = "kueue.x-k8s.io/pod-group-name"
	kueueQueueLabel    = "kueue.x-k8s.io/queue-name"
)

// checkRequest refuses requests that are not the creation of a pod. The webhook's
// rules never send any; a wrong rule must not break updates or bindings.
func checkRequest(req admission.Request) steering.Reason {
	if req.Operation != admissionv1.Create || req.SubResource != "" ||
		req.Kind.Group != "" || req.Kind.Kind != "Pod" ||
		req.Resource.Group != "" || req.Resource.Resource != "pods" {
		return ReasonNotPodCreate
	}
	return steering.ReasonNone
}

// eligible tells why a pod is left alone, if it is. The pod is the user's,
// without our parts.
func eligible(pod *corev1.Pod, cfg config.Configuration) steering.Reason {
	switch {
	case pod.Labels[config.LabelEnabled] == "false":
		return ReasonOptedOut
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "" || ownedBy(pod, "Node") || ownedBy(pod, "DaemonSet"):
		return ReasonNodePod
	case pod.Spec.NodeName != "":
		return ReasonBound
	case !steering.ServedScheduler(cfg, pod.Spec.SchedulerName):
		return ReasonOtherScheduler
	case len(pod.Spec.SchedulingGates) > 0:
		return ReasonGated
	case pod.Labels[kueuePodGroupLabel] != "" || pod.Labels[kueueQueueLabel] != "" && len(pod.OwnerReferences) == 0:
		return ReasonPodGroup
	case cfg.Spreading.UserConstraints == config.UserConstraintsRespect && wantsSpread(pod):
		return ReasonSpread
	}
	return steering.ReasonNone
}

// ownedBy tells whether an owner of the pod has the kind.
func ownedBy(pod *corev1.Pod, kind string) bool {
	for i := range pod.OwnerReferences {
		if pod.OwnerReferences[i].Kind == kind {
			return true
		}
	}
	return false
}

// wantsSpread tells whether the user asks for the pods to be kept apart.
func wantsSpread(pod *corev1.Pod) bool {
	if len(pod.Spec.TopologySpreadConstraints) > 0 {
		return true
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.PodAntiAffinity == nil {
		return false
	}
	anti := pod.Spec.Affinity.PodAntiAffinity
	return len(anti.RequiredDuringSchedulingIgnoredDuringExecution)+len(anti.PreferredDuringSchedulingIgnoredDuringExecution) > 0
}
