package scoring

import (
	"maps"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// node is what the index keeps of a Node. It is never changed.
type node struct {
	// object has only what matching needs: name, labels, taints. The name is also
	// here, which saves a look at the object.
	object      *corev1.Node
	name        string
	allocatable amounts
	// slot is a small number that no other node has now.
	slot int
	// hash orders nodes of equal rank: the same on every replica, and scattered
	// relative to the scheduler's own node order.
	hash uint64
	// ready, cordoned and leaving say whether a pod should go there at all;
	// leaving: being deleted, or marked by an autoscaler for removal.
	ready, cordoned, leaving bool
	// softTainted: there are taints with the effect PreferNoSchedule.
	softTainted bool
	// excluded by the configuration's selector, or because no term can name the node:
	// the API server accepts no node of such a name, but would refuse a pod for it.
	excluded bool
	// images are the images the node has, each name once.
	images []nodeImage
}

// nodeImage is one name of an image on a node, and its size.
type nodeImage struct {
	name string
	size int64
}

// newNode reduces a Node to what decisions use.
func newNode(n *corev1.Node, cfg *nodeRules, texts *texts) *node {
	name := texts.one(n.Name)
	return &node{
		object: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: texts.pairs(n.Labels)},
			Spec:       corev1.NodeSpec{Taints: n.Spec.Taints},
		},
		name:        name,
		softTainted: slices.ContainsFunc(n.Spec.Taints, isSoft),
		allocatable: newAmounts(n.Status.Allocatable),
		hash:        hashName(n.Name),
		ready:       isReady(n),
		cordoned:    n.Spec.Unschedulable,
		leaving:     isLeaving(n, cfg),
		excluded:    cfg.exclude.Matches(labels.Set(n.Labels)) || len(validation.IsDNS1123Subdomain(n.Name)) > 0,
		images:      imagesOf(n, texts),
	}
}

// copy returns a node that may get a slot of its own.
func (n *node) copy() *node {
	out := *n
	return &out
}

// equal tells whether two nodes of one name are the same to every decision.
func (n *node) equal(o *node) bool {
	return n.ready == o.ready && n.cordoned == o.cordoned && n.leaving == o.leaving &&
		slices.Equal(n.allocatable, o.allocatable) &&
		slices.Equal(n.images, o.images) &&
		maps.Equal(n.object.Labels, o.object.Labels) &&
		equality.Semantic.DeepEqual(n.object.Spec.Taints, o.object.Spec.Taints)
}

// describes tells whether newNode would make the same of the object. Kubelets write
// their nodes every few seconds or minutes, nearly always with nothing new.
func (n *node) describes(object *corev1.Node, cfg *nodeRules) bool {
	return n.ready == isReady(object) && n.cordoned == object.Spec.Unschedulable &&
		n.leaving == isLeaving(object, cfg) &&
		slices.Equal(n.allocatable, newAmounts(object.Status.Allocatable)) &&
		hasImages(object, n.images) &&
		maps.Equal(n.object.Labels, object.Labels) &&
		equality.Semantic.DeepEqual(n.object.Spec.Taints, object.Spec.Taints)
}

// hasImages tells whether imagesOf would return these.
func hasImages(n *corev1.Node, images []nodeImage) bool {
	next := 0
	for i := range n.Status.Images {
		for _, name := range n.Status.Images[i].Names {
			if next == len(images) || images[next].name != name || images[next].size != n.Status.Images[i].SizeBytes {
				return false // also when a name is there twice, which costs only time
			}
			next++
		}
	}
	return next == len(images)
}

func isLeaving(n *corev1.Node, cfg *nodeRules) bool {
	return n.DeletionTimestamp != nil || cfg.markedForRemoval(n.Spec.Taints)
}

// hasHostname tells whether the node takes part in constraints on the hostname.
func (n *node) hasHostname() bool {
	_, ok := n.object.Labels[corev1.LabelHostname]
	return ok
}

func isReady(n *corev1.Node) bool {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return n.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

func imagesOf(n *corev1.Node, texts *texts) []nodeImage {
	count := 0
	for i := range n.Status.Images {
		count += len(n.Status.Images[i].Names)
	}
	if count == 0 {
		return nil
	}
	out := make([]nodeImage, 0, count)
	seen := make(map[string]bool, count)
	for i := range n.Status.Images {
		for _, name := range n.Status.Images[i].Names {
			if !seen[name] {
				seen[name] = true
				out = append(out, nodeImage{texts.one(name), n.Status.Images[i].SizeBytes})
			}
		}
	}
	return out
}

// nodeRules are the configured rules about nodes, prepared for use.
type nodeRules struct {
	exclude       labels.Selector
	removalTaints []string
}

func newNodeRules(cfg config.Nodes) (*nodeRules, error) {
	rules := &nodeRules{exclude: labels.Nothing(), removalTaints: cfg.RemovalTaints}
	if cfg.ExcludeSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(cfg.ExcludeSelector)
		if err != nil {
			return nil, err
		}
		rules.exclude = selector
	}
	return rules, nil
}

// markedForRemoval tells whether a taint carries one of the configured keys.
func (r *nodeRules) markedForRemoval(taints []corev1.Taint) bool {
	for i := range taints {
		for _, key := range r.removalTaints {
			if taints[i].Key == key || isKeyPrefix(key) && strings.HasPrefix(taints[i].Key, key) {
				return true
			}
		}
	}
	return false
}

// isKeyPrefix tells whether a configured taint key stands for all that begin
// with it. No complete key can end so.
func isKeyPrefix(key string) bool {
	return strings.HasSuffix(key, "/") || strings.HasSuffix(key, "-")
}

// hasImage tells whether an image of that name is on the node.
func (n *node) hasImage(name string) bool {
	return slices.ContainsFunc(n.images, func(i nodeImage) bool { return i.name == name })
}

// hashName orders names in a way that is the same everywhere and has nothing to
// do with their alphabetical order.
func hashName(name string) uint64 { return xxhash.Sum64String(name) }
