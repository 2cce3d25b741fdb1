package nodes

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
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
)

// Node is what the index keeps of a Node. It is never changed.
type Node struct {
	// Object has only what matching needs: name, labels, taints. The name is also
	// here, which saves a look at the object.
	Object      *corev1.Node
	Name        string
	Allocatable demand.Amounts
	// Created is when the object was created, in seconds since 1970.
	Created int64
	// Slot is a small number that no other node has now.
	Slot int
	// Hash orders nodes of equal rank: the same on every replica, and scattered
	// relative to the scheduler's own node order.
	Hash uint64
	// ready, cordoned and leaving say whether a pod should go there at all;
	// leaving: being deleted, or marked by an autoscaler for removal.
	ready, cordoned, leaving bool
	// softTainted: there are taints with the effect PreferNoSchedule.
	softTainted bool
	// excluded by the configuration's selector, or because no term can name the node:
	// the API server accepts no node of such a name, but would refuse a pod for it.
	excluded bool
	// Images are the images the node has, each name once.
	Images []Image
}

// Image is one name of an image on a node, and its size.
type Image struct {
	Name string
	Size int64
}

// New reduces a Node to what decisions use.
func New(n *corev1.Node, cfg *Rules, texts *Texts) *Node {
	name := texts.One(n.Name)
	return &Node{
		Object: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: texts.pairs(n.Labels)},
			Spec:       corev1.NodeSpec{Taints: n.Spec.Taints},
		},
		Name:        name,
		Created:     n.CreationTimestamp.Unix(),
		softTainted: slices.ContainsFunc(n.Spec.Taints, isSoft),
		Allocatable: demand.NewAmounts(n.Status.Allocatable),
		Hash:        hashName(n.Name),
		ready:       isReady(n),
		cordoned:    n.Spec.Unschedulable,
		leaving:     isLeaving(n, cfg),
		excluded:    cfg.exclude.Matches(labels.Set(n.Labels)) || len(validation.IsDNS1123Subdomain(n.Name)) > 0,
		Images:      imagesOf(n, texts),
	}
}

// Copy returns a node that may get a slot of its own.
func (n *Node) Copy() *Node {
	out := *n
	return &out
}

// Equal tells whether two nodes of one name are the same to every decision.
func (n *Node) Equal(o *Node) bool {
	return n.Created == o.Created && n.ready == o.ready && n.cordoned == o.cordoned && n.leaving == o.leaving &&
		slices.Equal(n.Allocatable, o.Allocatable) &&
		slices.Equal(n.Images, o.Images) &&
		maps.Equal(n.Object.Labels, o.Object.Labels) &&
		equality.Semantic.DeepEqual(n.Object.Spec.Taints, o.Object.Spec.Taints)
}

// Describes tells whether newNode would make the same of the object. Kubelets write
// their nodes every few seconds or minutes, nearly always with nothing new.
func (n *Node) Describes(object *corev1.Node, cfg *Rules) bool {
	return n.Created == object.CreationTimestamp.Unix() && n.ready == isReady(object) && n.cordoned == object.Spec.Unschedulable &&
		n.leaving == isLeaving(object, cfg) &&
		slices.Equal(n.Allocatable, demand.NewAmounts(object.Status.Allocatable)) &&
		hasImages(object, n.Images) &&
		maps.Equal(n.Object.Labels, object.Labels) &&
		equality.Semantic.DeepEqual(n.Object.Spec.Taints, object.Spec.Taints)
}

// hasImages tells whether imagesOf would return these.
func hasImages(n *corev1.Node, images []Image) bool {
	next := 0
	for i := range n.Status.Images {
		for _, name := range n.Status.Images[i].Names {
			if next == len(images) || images[next].Name != name || images[next].Size != n.Status.Images[i].SizeBytes {
				return false // also when a name is there twice, which costs only time
			}
			next++
		}
	}
	return next == len(images)
}

func isLeaving(n *corev1.Node, cfg *Rules) bool {
	return n.DeletionTimestamp != nil || cfg.markedForRemoval(n.Spec.Taints)
}

// HasHostname tells whether the node takes part in constraints on the hostname.
func (n *Node) HasHostname() bool {
	_, ok := n.Object.Labels[corev1.LabelHostname]
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

func imagesOf(n *corev1.Node, texts *Texts) []Image {
	count := 0
	for i := range n.Status.Images {
		count += len(n.Status.Images[i].Names)
	}
	if count == 0 {
		return nil
	}
	out := make([]Image, 0, count)
	seen := make(map[string]bool, count)
	for i := range n.Status.Images {
		for _, name := range n.Status.Images[i].Names {
			if !seen[name] {
				seen[name] = true
				out = append(out, Image{texts.One(name), n.Status.Images[i].SizeBytes})
			}
		}
	}
	return out
}

// Rules are the configured rules about nodes, prepared for use.
type Rules struct {
	exclude       labels.Selector
	removalTaints []string
}

// NewRules prepares the configured rules. The error is about the selector.
func NewRules(cfg config.Nodes) (*Rules, error) {
	rules := &Rules{exclude: labels.Nothing(), removalTaints: cfg.RemovalTaints}
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
func (r *Rules) markedForRemoval(taints []corev1.Taint) bool {
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

// HasImage tells whether an image of that name is on the node.
func (n *Node) HasImage(name string) bool {
	return slices.ContainsFunc(n.Images, func(i Image) bool { return i.Name == name })
}

// hashName orders names in a way that is the same everywhere and has nothing to
// do with their alphabetical order.
func hashName(name string) uint64 { return xxhash.Sum64String(name) }
