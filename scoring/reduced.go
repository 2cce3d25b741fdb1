package scoring

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// A Pod takes several kilobytes, even when all that may hold a secret is gone, and at
// the start a reflector collects the 150,000 of a large cluster before it hands them
// on. So it collects these instead.

// reducedPod is what is read of a Pod. It is never changed.
type reducedPod struct {
	namespace, name string
	uid             types.UID
	// nodeName is the node that the pod is bound to.
	nodeName string
	// created is in seconds since 1970.
	created int64
	// over: it succeeded or failed; refused: it failed because its node did not take it.
	over, failed, refused bool
	deleting              bool
	// follows: nothing in the pod keeps the scheduler from following its terms.
	follows bool
	// expects: it is new, asks for GPUs and is one that we should have been asked about,
	// apart from its namespace.
	expects bool
	// replica: it is one of the webhook's own pods, and is called.
	replica bool
	// load is shared with other pods that take the same.
	load *load
	*placement
}

// placement is what a pod says about where it is to go: few do, and once they are
// bound little of it matters.
type placement struct {
	// nominated is the node that the pod is to get after preemption.
	nominated string
	// admission, steering and target are our annotations.
	admission        types.UID
	steering, target string
	// listed are the nodes that its terms name, by falling weight; nil once it is bound.
	listed []string
	// landing says where it is by its terms, if it is bound and steered.
	landing Landing
}

// noPlacement is that of most pods.
var noPlacement = &placement{}

// reducer reduces objects to what the index reads of them. It may be used in parallel.
type reducer struct {
	cfg   config.Configuration
	rules *nodeRules
	// ownNamespace is where this process' pod and those of the other replicas are.
	ownNamespace string
	// texts and loads are those that many objects have in common.
	texts texts
	loads loads
}

// newReducer returns one for a valid configuration.
func newReducer(cfg config.Configuration) (*reducer, error) {
	rules, err := newNodeRules(cfg.Nodes)
	if err != nil {
		return nil, fmt.Errorf("nodes.excludeSelector: %w", err)
	}
	return &reducer{cfg: cfg, rules: rules}, nil
}

// Pod reduces a Pod to what the index reads.
func (r *reducer) Pod(pod *corev1.Pod) *reducedPod {
	p := &reducedPod{
		namespace: r.texts.one(pod.Namespace), name: pod.Name, uid: pod.UID,
		created:   pod.CreationTimestamp.Unix(),
		nodeName:  r.texts.one(pod.Spec.NodeName),
		over:      pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		failed:    pod.Status.Phase == corev1.PodFailed,
		refused:   refusedByNode(pod),
		deleting:  pod.DeletionTimestamp != nil,
		follows:   followsTerms(r.cfg, pod),
		replica:   r.isReplica(pod),
		load:      r.loads.one(loadOf(pod, r.cfg.Resources)),
		placement: r.placement(pod),
	}
	if pod.Spec.NodeName == "" {
		p.expects = expectsSteering(r.cfg, pod) && len(demandOf(pod, r.cfg.Resources, false).GPUs) > 0
	}
	return p
}

func (r *reducer) placement(pod *corev1.Pod) *placement {
	steering := pod.Annotations[config.AnnotationSteering]
	admission, target := pod.Annotations[config.AnnotationAdmission], pod.Annotations[config.AnnotationTarget]
	if steering == "" && admission == "" && target == "" && pod.Status.NominatedNodeName == "" {
		return noPlacement
	}
	p := &placement{
		nominated: r.texts.one(pod.Status.NominatedNodeName), admission: types.UID(admission),
		steering: r.texts.one(steering), target: r.texts.one(target),
	}
	if pod.Spec.NodeName == "" {
		p.listed = r.texts.all(listedNodes(pod))
	} else if p.steered() {
		p.landing = landingOf(pod)
	}
	return p
}

// steered tells whether the pod has terms of ours.
func (p *placement) steered() bool {
	return p.steering == config.SteeringRanked || p.steering == config.SteeringLate
}

// usesGPUs tells whether the pod asks for GPUs.
func (p *reducedPod) usesGPUs(cfg config.Resources) bool {
	return slices.ContainsFunc(p.load.requests, func(a amount) bool { return cfg.IsGPU(string(a.name)) })
}

// Node reduces a Node to what the index reads: known, which is what the index has of it,
// nil for nothing, if the object says the same, as after a heartbeat.
func (r *reducer) Node(object *corev1.Node, known *node) *node {
	if known != nil && known.describes(object, r.rules) {
		return known
	}
	return newNode(object, r.rules, &r.texts)
}

// isReplica tells whether a pod serves as this process does: the API server calls it
// as well.
func (r *reducer) isReplica(pod *corev1.Pod) bool {
	return pod.Namespace == r.ownNamespace && r.ownNamespace != "" && pod.DeletionTimestamp == nil &&
		pod.Labels[config.LabelName] == config.WebhookPodName &&
		pod.Labels[config.LabelComponent] == config.WebhookPodComponent && isPodReady(pod)
}

func isPodReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// refusedByNode tells whether the kubelet refused to admit a pod because it could
// not have the devices or resources that the scheduler thought were free. Reasons:
// k8s.io/kubernetes pkg/kubelet/lifecycle (UnexpectedAdmissionError, OutOf...) and
// cm/topologymanager. Pods that ran and failed say little about the node.
func refusedByNode(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed || pod.Spec.NodeName == "" {
		return false
	}
	reason := pod.Status.Reason
	return reason == "UnexpectedAdmissionError" || reason == "TopologyAffinityError" || strings.HasPrefix(reason, "OutOf")
}
