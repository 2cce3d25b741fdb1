package reduced

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

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
	// Over: it succeeded or failed.
	Over, Deleting bool
	// Follows: nothing in the pod keeps the scheduler from following its terms.
	Follows bool
	// Expects: it is new, asks for GPUs and is one that we should have been asked about,
	// apart from its namespace.
	Expects bool
	// Replica: it is one of the webhook's own pods, and is called.
	Replica bool
	// Outcome is what it shows of its node, if it asks for GPUs, OutcomeAt since when, in
	// seconds since 1970.
	Outcome   Outcome
	OutcomeAt int64
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
	// Listed are the nodes that its terms name, by falling weight, as many as terms of ours
	// can name; nil once it is bound. ListedBytes is what they take.
	Listed      []string
	ListedBytes int
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
	// nodeTexts, podTexts and loads are those that many objects have in common. The texts of
	// pods are apart from those of nodes: anybody may create pods with names that nobody else
	// has, and those of nodes, of which there are a hundred per node, must stay shared.
	nodeTexts, podTexts *nodes.Texts
	loads               *loads
}

const (
	// MaxPodTextBytes is what the texts of pods together may take, twice: see nodes.Recent.
	// The names of 15,000 nodes and 1,000 namespaces take it once.
	MaxPodTextBytes = 2 << 20
	// maxListed is how many nodes the terms of a pod list at most: no pod has more parts of
	// ours.
	maxListed = steering.MostElements
	// MaxListedBytes is what the nodes that a pod's terms list may take: as many with
	// names of 65 bytes.
	MaxListedBytes = 16 << 10
)

// NewReducer returns one for a valid configuration.
func NewReducer(cfg config.Configuration) (*Reducer, error) {
	rules, err := nodes.NewRules(cfg.Nodes)
	if err != nil {
		return nil, fmt.Errorf("nodes.excludeSelector: %w", err)
	}
	return &Reducer{
		cfg: cfg, rules: rules,
		nodeTexts: nodes.NewTexts(nodes.MaxTextBytes), podTexts: nodes.NewTexts(MaxPodTextBytes), loads: newLoads(),
	}, nil
}

// Pod reduces a Pod to what the index reads.
func (r *Reducer) Pod(pod *corev1.Pod) *Pod {
	pod = demand.WithFewResources(pod, r.cfg.Resources)
	p := &Pod{
		Namespace: r.podTexts.One(pod.Namespace), Name: pod.Name, UID: pod.UID,
		Created:   pod.CreationTimestamp.Unix(),
		NodeName:  r.podTexts.One(pod.Spec.NodeName),
		Over:      pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		Deleting:  pod.DeletionTimestamp != nil,
		Follows:   pod.Spec.NodeName == "" && steering.Follows(pod, &r.cfg),
		Replica:   r.isReplica(pod),
		Load:      r.loads.one(demand.LoadOf(pod, r.cfg.Resources)),
		placement: r.placement(pod),
	}
	if pod.Spec.NodeName != "" && p.UsesGPUs(r.cfg.Resources) {
		outcome, at := outcomeOf(pod, r.cfg.Resources)
		p.Outcome, p.OutcomeAt = outcome, at.Unix()
	}
	if pod.Spec.NodeName == "" {
		p.Expects = steering.Expects(pod, &r.cfg) && len(demand.OfStored(pod, r.cfg.Resources, false).GPUs) > 0
	}
	return p
}

func (r *Reducer) placement(pod *corev1.Pod) *placement {
	how := knownSteering(pod.Annotations[config.AnnotationSteering])
	admission, target := admissionUID(pod), r.target(pod)
	if how == "" && admission == "" && target == "" && pod.Status.NominatedNodeName == "" {
		return noPlacement
	}
	if steering.Exceeds(pod) {
		// No decision of ours made this: its annotations are its author's too.
		return &placement{Nominated: r.podTexts.One(pod.Status.NominatedNodeName)}
	}
	p := &placement{
		Nominated: r.podTexts.One(pod.Status.NominatedNodeName), Admission: admission,
		steering: how, Target: target,
	}
	if pod.Spec.NodeName == "" {
		p.Listed, p.ListedBytes = r.listed(pod)
	} else if p.Steered() {
		p.Landing = steering.LandingOf(pod)
	}
	return p
}

// Anybody may write our annotations, 256 KiB of them. What is not of the form that we
// write is as if it were not there.

// knownSteering returns one of our words, empty for any other.
func knownSteering(how string) string {
	for _, known := range []string{config.SteeringRanked, config.SteeringLate, config.SteeringDryRun} {
		if how == known {
			return known
		}
	}
	return ""
}

// admissionUID is the UID of the admission request that the pod says it had, empty for
// what is longer than any.
func admissionUID(pod *corev1.Pod) types.UID {
	uid := pod.Annotations[config.AnnotationAdmission]
	if len(uid) > steering.MaxUIDLength {
		return ""
	}
	return types.UID(uid)
}

// target is the node that the pod says it is expected on, empty for what is no name of a
// node.
func (r *Reducer) target(pod *corev1.Pod) string {
	target := pod.Annotations[config.AnnotationTarget]
	// By its length first: the other check is a regular expression.
	if target == "" || len(target) > validation.DNS1123SubdomainMaxLength || len(validation.IsDNS1123Subdomain(target)) > 0 {
		return ""
	}
	return r.podTexts.One(target)
}

// listed returns the nodes that our terms on the pod name, as many as such terms can, and
// what they take.
func (r *Reducer) listed(pod *corev1.Pod) (names []string, bytes int) {
	names = steering.Listed(pod)
	for i, name := range names {
		if bytes += len(name); i == maxListed || bytes > MaxListedBytes-maxListed*nodes.TextHeader {
			names = names[:i]
			break
		}
	}
	return r.podTexts.All(names)
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
	return nodes.New(object, r.rules, r.nodeTexts)
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
