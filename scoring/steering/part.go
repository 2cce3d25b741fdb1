package steering

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// What we add to a pod is recognised by its shape, never by an annotation:
// copies of a pod (kubectl debug --copy-to, a restore) lose annotations and keep
// the spec.

// Parts are what a pod is to have of us.
type Parts struct {
	Terms Terms
	// Neutral says whether it gets the neutral spread constraint.
	Neutral bool
	// Late is the late steering, nil for none.
	Late        *Late
	Annotations map[string]string
	// AnnotationsOnly leaves spec and labels alone: dry-run mode.
	AnnotationsOnly bool
}

// part is one kind of what we add to pods. To add one: a file with its part, an entry in
// the list below, and a field in Parts.
type part struct {
	// find returns which of the pod's elements have the shape of ours.
	find func(*corev1.Pod) found
	// strip takes these out of a shallow copy of the pod. It may change the copy itself,
	// but nothing that the copy shares with the pod.
	strip func(*corev1.Pod, found)
	// operations writes what makes the pod, in which these were found, have the wanted
	// part and nothing else of ours.
	operations func(*builder, found, *Parts)
	// annotations: the part is no more than information.
	annotations bool
}

// parts are all, in the order of their operations.
var parts = [...]part{annotationPart, termPart, latePart, constraintPart, labelPart}

// found are elements of a pod that are ours, of one part: indices in its list, rising, or
// keys in its map.
type found struct {
	at   []int
	keys []string
}

func (f found) any() bool { return len(f.at)+len(f.keys) > 0 }

// Own says which elements of a pod have the shape of ours.
type Own [len(parts)]found

// Any tells whether there are any.
func (o *Own) Any() bool { return slices.ContainsFunc(o[:], found.any) }

// Elements is how many there are in lists.
func (o *Own) Elements() (count int) {
	for i := range o {
		count += len(o[i].at)
	}
	return count
}

// MostElements is how many elements we add to the lists of a pod at most: terms, one soft
// pod affinity and one spread constraint. What a pod has more cannot be ours, and none of
// it is: neither is it taken out when the pod is created, which would take the API server
// one operation for each, nor does the index follow it.
const MostElements = config.MostTerms + 2

// Exceeds tells whether they are more than we ever add.
func (o *Own) Exceeds() bool { return o.Elements() > MostElements }

// Exceeds tells whether a pod has more elements of the shape of ours than we ever add, so
// that its author wrote them.
func Exceeds(pod *corev1.Pod) bool {
	own := ownOf(pod)
	return own.Exceeds()
}

// Annotations are the keys of our annotations on the pod.
func (o *Own) Annotations() []string { return o[0].keys }

// Separate returns the pod as its author wrote it, without our parts, and which they are.
// The pod itself is not changed; what stays is shared.
func Separate(pod *corev1.Pod) (*corev1.Pod, Own) {
	own := ownOf(pod)
	if !own.Any() {
		return pod, own
	}
	user := *pod
	for i := range parts {
		if parts[i].strip != nil && own[i].any() {
			parts[i].strip(&user, own[i])
		}
	}
	return &user, own
}

// ownOf says which elements of a pod have the shape of ours.
func ownOf(pod *corev1.Pod) (own Own) {
	for i := range parts {
		own[i] = parts[i].find(pod)
	}
	return own
}

// Operation is one JSON patch operation (RFC 6902). Value is nil for none.
type Operation struct {
	Op, Path string
	Value    any
}

// Operations returns what makes a pod, of which own are ours, have the wanted parts and
// nothing else of ours. The author's own elements stay as they are, at their place.
func Operations(pod *corev1.Pod, own *Own, wanted *Parts) []Operation {
	b := builder{pod: pod}
	for i := range parts {
		if parts[i].annotations || !wanted.AnnotationsOnly {
			parts[i].operations(&b, own[i], wanted)
		}
	}
	return b.operations
}

// builder collects operations on a pod.
type builder struct {
	pod        *corev1.Pod
	operations []Operation
	// affinity is true once the pod has an affinity object, from itself or from
	// an operation.
	affinity bool
}

func (b *builder) add(path string, value any) {
	b.operations = append(b.operations, Operation{Op: "add", Path: path, Value: value})
}

func (b *builder) remove(path string) {
	b.operations = append(b.operations, Operation{Op: "remove", Path: path})
}

// removeKeys removes entries of a map.
func (b *builder) removeKeys(path string, keys []string) {
	for _, key := range keys {
		b.remove(path + "/" + escape(key))
	}
}

// removeAt removes elements of a list, or the whole list when nothing would be
// left. It returns whether the list still has elements.
func (b *builder) removeAt(path string, indices []int, length int) bool {
	if length > 0 && len(indices) == length {
		b.remove(path)
		return false
	}
	for _, i := range slices.Backward(indices) {
		b.remove(path + "/" + strconv.Itoa(i))
	}
	return length > 0
}

const pathAffinity = "/spec/affinity"

// ensureAffinity makes sure that the affinity object is there. Adding to a
// missing parent does not apply; adding over an explicit null does.
func (b *builder) ensureAffinity() {
	if b.pod.Spec.Affinity == nil && !b.affinity {
		b.add(pathAffinity, struct{}{})
	}
	b.affinity = true
}

// pointerToken writes a key as a JSON pointer token (RFC 6901).
var pointerToken = strings.NewReplacer("~", "~0", "/", "~1")

func escape(key string) string { return pointerToken.Replace(key) }

// indices returns those of the elements that are ours, rising.
func indices[T any](all []T, isOurs func(*T) bool) found {
	var f found
	for i := range all {
		if isOurs(&all[i]) {
			f.at = append(f.at, i)
		}
	}
	return f
}

// keys returns those of the keys that a map has.
func keys(m map[string]string, ours ...string) found {
	var f found
	for _, key := range ours {
		if _, ok := m[key]; ok {
			f.keys = append(f.keys, key)
		}
	}
	return f
}

// without returns the elements but those that were found.
func without[T any](all []T, f found) (rest []T) {
	next := 0 // in f.at, which rises as i does: a pod may have thousands of elements
	for i := range all {
		if next < len(f.at) && f.at[next] == i {
			next++
			continue
		}
		rest = append(rest, all[i])
	}
	return rest
}
