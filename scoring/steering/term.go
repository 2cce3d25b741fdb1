package steering

import (
	"cmp"
	"encoding/json/jsontext"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxWeight is the largest weight the API allows in a preferred term.
const MaxWeight = 100

// Term is a preferred node-affinity term of ours: for one node. The form matters: by name
// of the node, not by hostname label, which is not the node's identity and which Karpenter
// takes for a requirement.
type Term struct {
	// Node is the node's metadata.name, Weight 1 to 100.
	Node   string
	Weight int32
}

// Terms are the terms of a pod.
type Terms []Term

// Valid checks the terms against the API's own rules: an invalid one would make the
// API server refuse the pod. How names are formed was checked when the index saw the
// nodes.
func (t Terms) Valid() bool {
	return !slices.ContainsFunc(t, func(one Term) bool { return one.Weight < 1 || one.Weight > MaxWeight || one.Node == "" })
}

// IsTerm tells whether a preferred term has exactly our form: one field
// requirement, metadata.name In one name, and nothing else.
func IsTerm(term *corev1.PreferredSchedulingTerm) bool {
	p := &term.Preference
	return len(p.MatchExpressions) == 0 && len(p.MatchFields) == 1 &&
		p.MatchFields[0].Key == metav1.ObjectNameField &&
		p.MatchFields[0].Operator == corev1.NodeSelectorOpIn &&
		len(p.MatchFields[0].Values) == 1
}

// Listed returns the nodes that our terms on the pod name, by falling
// weight.
func Listed(pod *corev1.Pod) []string {
	var ours []*corev1.PreferredSchedulingTerm
	terms := PreferredTerms(pod)
	for i := range terms {
		if IsTerm(&terms[i]) {
			ours = append(ours, &terms[i])
		}
	}
	slices.SortStableFunc(ours, func(a, b *corev1.PreferredSchedulingTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	names := make([]string, len(ours))
	for i := range ours {
		names[i] = ours[i].Preference.MatchFields[0].Values[0]
	}
	return names
}

// PreferredTerms are the pod's preferred node-affinity terms, nil if there are none.
func PreferredTerms(pod *corev1.Pod) []corev1.PreferredSchedulingTerm {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
}

const (
	pathNodeAffinity   = pathAffinity + "/nodeAffinity"
	pathPreferredNodes = pathNodeAffinity + "/preferredDuringSchedulingIgnoredDuringExecution"
)

var termPart = part{
	find: func(pod *corev1.Pod) found { return indices(PreferredTerms(pod), IsTerm) },
	strip: func(user *corev1.Pod, f found) {
		affinity, nodes := *user.Spec.Affinity, *user.Spec.Affinity.NodeAffinity
		nodes.PreferredDuringSchedulingIgnoredDuringExecution = without(PreferredTerms(user), f)
		affinity.NodeAffinity = &nodes
		user.Spec.Affinity = &affinity
	},
	operations: func(b *builder, f found, wanted *Parts) {
		affinity, has := b.pod.Spec.Affinity, false
		exists := affinity != nil && affinity.NodeAffinity != nil
		if exists {
			has = b.removeAt(pathPreferredNodes, f.at, len(PreferredTerms(b.pod)))
		}
		if len(wanted.Terms) == 0 {
			return
		}
		b.ensureAffinity()
		switch {
		case !exists:
			b.add(pathNodeAffinity, nodeAffinity{wanted.Terms})
		case !has:
			b.add(pathPreferredNodes, wanted.Terms)
		default:
			for _, one := range wanted.Terms {
				b.add(pathPreferredNodes+"/-", one)
			}
		}
	},
}

// Text is a value of an operation that writes itself as JSON. Terms are most of a patch,
// and the JSON library, which goes by reflection, takes three to four times as long for
// those of a large cluster (BenchmarkMarshal of package webhook).
type Text interface {
	// AppendJSON appends the value.
	AppendJSON([]byte) []byte
	// JSONSize is how many bytes that takes, or some more.
	JSONSize() int
}

// nodeAffinity is a node affinity with these terms and nothing else.
type nodeAffinity struct{ preferred Terms }

// Room for the text around the name of a term's node, with a comma, and for that around a
// list of terms.
const (
	bytesPerTerm     = len(`{"weight":100,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":[""]}]}},`)
	bytesPerAffinity = len(`{"preferredDuringSchedulingIgnoredDuringExecution":[]}`)
)

// AppendJSON implements Text.
func (t Term) AppendJSON(b []byte) []byte {
	b = append(b, `{"weight":`...)
	b = strconv.AppendInt(b, int64(t.Weight), 10)
	b = append(b, `,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":[`...)
	b, _ = jsontext.AppendQuote(b, t.Node)
	return append(b, `]}]}}`...)
}

// JSONSize implements Text.
func (t Term) JSONSize() int { return bytesPerTerm + len(t.Node) }

// AppendJSON implements Text.
func (t Terms) AppendJSON(b []byte) []byte {
	b = append(b, '[')
	for i := range t {
		if i > 0 {
			b = append(b, ',')
		}
		b = t[i].AppendJSON(b)
	}
	return append(b, ']')
}

// JSONSize implements Text.
func (t Terms) JSONSize() int {
	size := len(`[]`)
	for i := range t {
		size += t[i].JSONSize()
	}
	return size
}

// AppendJSON implements Text.
func (a nodeAffinity) AppendJSON(b []byte) []byte {
	b = append(b, `{"preferredDuringSchedulingIgnoredDuringExecution":`...)
	return append(a.preferred.AppendJSON(b), '}')
}

// JSONSize implements Text.
func (a nodeAffinity) JSONSize() int { return bytesPerAffinity + a.preferred.JSONSize() }
