package reduced

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// A Pod takes several kilobytes, even when all that may hold a secret is gone, and at
// the start a reflector collects the 150,000 of a large cluster before it hands them
// on. So it collects these instead.

// Pod is what is read of a Pod. It is never changed.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	// NodeName is the node that the pod is bound to.
	NodeName string
	// Created is in seconds since 1970.
	Created int64
	// Over: it succeeded or failed; Refused: it failed because its node did not take it.
	Over, Failed, Refused bool
	Deleting              bool
	// Follows: nothing in the pod keeps the scheduler from following its terms.
	Follows bool
	// Expects: it is new, asks for GPUs and is one that we should have been asked about,
	// apart from its namespace.
	Expects bool
	// Replica: it is one of the webhook's own pods, and is called.
	Replica bool
	// Load is shared with other pods that take the same.
	Load *demand.Load
	*placement
}

// placement is what a pod says about where it is to go: few do, and once they are
// bound little of it matters.
type placement struct {
	// Nominated is the node that the pod is to get after preemption.
	Nominated string
	// Admission, steering and target are our annotations.
	Admission        types.UID
	steering, Target string
	// Listed are the nodes that its terms name, by falling weight; nil once it is bound.
	Listed []string
	// Landing says where it is by its terms, if it is bound and steered.
	Landing steering.Landing
}

// noPlacement is that of most pods.
var noPlacement = &placement{}

// Reducer reduces objects to what the index reads of them. It may be used in parallel.
type Reducer struct {
	cfg   config.Configuration
	rules *nodes.Rules
	// OwnNamespace is where this process' pod and those of the other replicas are.
	OwnNamespace string
	// texts and loads are those that many objects have in common.
	texts nodes.Texts
	loads loads
}

// NewReducer returns one for a valid configuration.
func NewReducer(cfg config.Configuration) (*Reducer, error) {
	rules, err := nodes.NewRules(cfg.Nodes)
	if err != nil {
		return nil, fmt.Errorf("nodes.excludeSelector: %w", err)
	}
	return &Reducer{cfg: cfg, rules: rules}, nil
}

// Pod reduces a Pod to what the index reads.
func (r *Reducer) Pod(pod *corev1.Pod) *Pod {
	p := &Pod{
		Namespace: r.texts.One(pod.Namespace), Name: pod.Name, UID: pod.UID,
		Created:   pod.CreationTimestamp.Unix(),
		NodeName:  r.texts.One(pod.Spec.NodeName),
		Over:      pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Failed:    pod.Status.Phase == corev1.PodFailed,
		Refused:   refusedByNode(pod),
		Deleting:  pod.DeletionTimestamp != nil,
		Follows:   pod.Spec.NodeName == "" && steering.Follows(pod, &r.cfg),
		Replica:   r.isReplica(pod),
		Load:      r.loads.one(demand.LoadOf(pod, r.cfg.Resources)),
		placement: r.placement(pod),
	}
	if pod.Spec.NodeName == "" {
		p.Expects = steering.Expects(pod, &r.cfg) && len(demand.OfStored(pod, r.cfg.Resources, false).GPUs) > 0
	}
	return p
}

func (r *Reducer) placement(pod *corev1.Pod) *placement {
	how := pod.Annotations[config.AnnotationSteering]
	admission, target := pod.Annotations[config.AnnotationAdmission], pod.Annotations[config.AnnotationTarget]
	if how == "" && admission == "" && target == "" && pod.Status.NominatedNodeName == "" {
		return noPlacement
	}
	p := &placement{
		Nominated: r.texts.One(pod.Status.NominatedNodeName), Admission: types.UID(admission),
		steering: r.texts.One(how), Target: r.texts.One(target),
	}
	if pod.Spec.NodeName == "" {
		p.Listed = r.texts.All(steering.Listed(pod))
	} else if p.Steered() {
		p.Landing = steering.LandingOf(pod)
	}
	return p
}

// Steered tells whether the pod has terms of ours.
func (p *placement) Steered() bool {
	return p.steering == config.SteeringRanked || p.steering == config.SteeringLate
}

// UsesGPUs tells whether the pod asks for GPUs.
func (p *Pod) UsesGPUs(cfg config.Resources) bool {
	return slices.ContainsFunc(p.Load.Requests, func(a demand.Amount) bool { return cfg.IsGPU(string(a.Name)) })
}

// Node reduces a Node to what the index reads: known, which is what the index has of it,
// nil for nothing, if the object says the same, as after a heartbeat.
func (r *Reducer) Node(object *corev1.Node, known *nodes.Node) *nodes.Node {
	if known != nil && known.Describes(object, r.rules) {
		return known
	}
	return nodes.New(object, r.rules, &r.texts)
}

// isReplica tells whether a pod serves as this process does: the API server calls it
// as well.
func (r *Reducer) isReplica(pod *corev1.Pod) bool {
	return pod.Namespace == r.OwnNamespace && r.OwnNamespace != "" && pod.DeletionTimestamp == nil &&
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
