package scoring

import (
	"slices"
	"strconv"
	"sync"

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

// transformPod turns a Pod into what the index reads of it. Anything else is returned
// as it is.
func (ix *Index) transformPod(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		return ix.newReducedPod(pod), nil
	}
	return obj, nil
}

// newReducedPod reduces a Pod to what the index reads.
func (ix *Index) newReducedPod(pod *corev1.Pod) *reducedPod {
	p := &reducedPod{
		namespace: ix.texts.one(pod.Namespace), name: pod.Name, uid: pod.UID,
		created:   pod.CreationTimestamp.Unix(),
		nodeName:  ix.texts.one(pod.Spec.NodeName),
		over:      pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
		failed:    pod.Status.Phase == corev1.PodFailed,
		refused:   refusedByNode(pod),
		deleting:  pod.DeletionTimestamp != nil,
		follows:   followsTerms(ix.cfg, pod),
		replica:   ix.isReplica(pod),
		load:      ix.loads.one(loadOf(pod, ix.cfg.Resources)),
		placement: ix.newPlacement(pod),
	}
	if pod.Spec.NodeName == "" {
		p.expects = expectsSteering(ix.cfg, pod) && len(demandOf(pod, ix.cfg.Resources, false).GPUs) > 0
	}
	return p
}

func (ix *Index) newPlacement(pod *corev1.Pod) *placement {
	steering := pod.Annotations[config.AnnotationSteering]
	admission, target := pod.Annotations[config.AnnotationAdmission], pod.Annotations[config.AnnotationTarget]
	if steering == "" && admission == "" && target == "" && pod.Status.NominatedNodeName == "" {
		return noPlacement
	}
	p := &placement{
		nominated: ix.texts.one(pod.Status.NominatedNodeName), admission: types.UID(admission),
		steering: ix.texts.one(steering), target: ix.texts.one(target),
	}
	if pod.Spec.NodeName == "" {
		p.listed = ix.texts.all(listedNodes(pod))
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

// transformNode turns a Node into what the index reads of it. Anything else is returned
// as it is.
func (ix *Index) transformNode(obj any) (any, error) {
	if n, ok := obj.(*corev1.Node); ok {
		return ix.reducedNode(n), nil
	}
	return obj, nil
}

// reducedNode reduces a Node to what the index reads. After a heartbeat that is what
// the index has already.
func (ix *Index) reducedNode(object *corev1.Node) *node {
	n := ix.known(object.Name)
	if n == nil || !n.describes(object, ix.rules) {
		n = newNode(object, ix.rules, &ix.texts)
	}
	return n
}

// known returns what the index has of a node, nil for nothing.
func (ix *Index) known(name string) *node {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if s := ix.usage.of(name); s != nil {
		return s.node
	}
	return nil
}

// texts holds each of the texts that thousands of objects have in common once: names
// of nodes, namespaces and images, labels.
type texts struct {
	mu   sync.Mutex
	held map[string]string
}

// maxTexts is when all are forgotten, so that those that are no longer in use do not
// stay for ever: 15,000 nodes with a name and a few labels and images of their own.
const maxTexts = 200_000

// one returns a text that is the same as t.
func (t *texts) one(text string) string {
	if text == "" {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.locked(text)
}

// all returns texts that are the same as those in list, in a list of their own.
func (t *texts) all(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]string, len(list))
	for i, text := range list {
		out[i] = t.locked(text)
	}
	return out
}

// pairs returns a map that is the same as m.
func (t *texts) pairs(m map[string]string) map[string]string {
	if m == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]string, len(m))
	for key, value := range m {
		out[t.locked(key)] = t.locked(value)
	}
	return out
}

func (t *texts) locked(text string) string {
	if held, ok := t.held[text]; ok {
		return held
	}
	if t.held == nil || len(t.held) >= maxTexts {
		t.held = map[string]string{}
	}
	t.held[text] = text
	return text
}

// loads holds each of the loads that thousands of pods have in common once.
type loads struct {
	mu   sync.Mutex
	held map[string]*load
}

// maxLoads is when all are forgotten: many more than kinds of pods in a cluster.
const maxLoads = 10_000

// one returns a load that is the same as l.
func (h *loads) one(l load) *load {
	key := make([]byte, 0, 256)
	key = strconv.AppendInt(append(key, 'p'), l.pods, 10)
	key = strconv.AppendInt(append(key, 'c'), l.scoringCPU, 10)
	key = strconv.AppendInt(append(key, 'm'), l.scoringMemory, 10)
	for _, list := range []amounts{l.requests, l.occupants, l.terminating} {
		key = append(key, ';')
		for _, a := range list {
			key = strconv.AppendInt(append(append(key, a.name...), '='), a.value, 10)
			key = append(key, ',')
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if held := h.held[string(key)]; held != nil {
		return held
	}
	if h.held == nil || len(h.held) >= maxLoads {
		h.held = map[string]*load{}
	}
	h.held[string(key)] = &l
	return &l
}

// isReplica tells whether a pod serves as this process does: the API server calls it
// as well.
func (ix *Index) isReplica(pod *corev1.Pod) bool {
	return pod.Namespace == ix.ownNamespace && ix.ownNamespace != "" && pod.DeletionTimestamp == nil &&
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
