package webhook

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// operation is one JSON patch operation (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Paths we write to. Nothing else of a pod is ever touched.
const (
	pathAffinity       = "/spec/affinity"
	pathNodeAffinity   = pathAffinity + "/nodeAffinity"
	pathPreferredNodes = pathNodeAffinity + "/preferredDuringSchedulingIgnoredDuringExecution"
	pathPodAffinity    = pathAffinity + "/podAffinity"
	pathPreferredPods  = pathPodAffinity + "/preferredDuringSchedulingIgnoredDuringExecution"
	pathSpread         = "/spec/topologySpreadConstraints"
	pathAnnotations    = "/metadata/annotations"
	pathLabels         = "/metadata/labels"
)

// buildPatch turns a decision into a JSON patch for the submitted pod, nil when
// there is nothing to change. Parts we added earlier are replaced; the user's
// stay as they are, byte for byte, at their place. The patch is applied to the
// received bytes before it is returned: one that does not apply would reject the
// pod, whatever the failure policy.
func buildPatch(s *submission, d *scoring.Decision, cfg config.Configuration) ([]byte, scoring.Reason) {
	wanted, ok := wantedParts(s, d, cfg)
	if !ok {
		return nil, scoring.ReasonNone
	}
	if !wanted.valid() {
		return nil, ReasonPatch
	}
	if !wanted.fitAnnotations(s) {
		return nil, scoring.ReasonTooLarge
	}
	ops := wanted.operations(s)
	if len(ops) == 0 {
		return nil, scoring.ReasonNone
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		return nil, ReasonPatch
	}
	return verified(s, patch)
}

// verified applies the patch to the pod as received. A patch that changes
// nothing, as on a reinvocation, is dropped.
func verified(s *submission, patch []byte) ([]byte, scoring.Reason) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, ReasonPatch
	}
	result, err := decoded.Apply(s.raw)
	if err != nil {
		return nil, ReasonPatch
	}
	if s.ours.any() && sameJSON(s.raw, result) {
		return nil, scoring.ReasonNone
	}
	return patch, scoring.ReasonNone
}

// sameJSON tells whether two texts say the same. The patch library's own Equal
// panics when a list has a null.
func sameJSON(a, b []byte) bool {
	var x, y any
	return kjson.UnmarshalCaseSensitivePreserveInts(a, &x) == nil &&
		kjson.UnmarshalCaseSensitivePreserveInts(b, &y) == nil && reflect.DeepEqual(x, y)
}

// parts are what a pod is to have of us.
type parts struct {
	terms       []corev1.PreferredSchedulingTerm
	neutral     bool
	late        *scoring.Late
	annotations map[string]string
	// annotationsOnly leaves spec and labels alone: dry-run mode.
	annotationsOnly bool
}

// wantedParts returns what the pod is to have of us after this decision. It is
// false when the pod is not to be touched at all.
func wantedParts(s *submission, d *scoring.Decision, cfg config.Configuration) (parts, bool) {
	ranked, late := d.Reason == scoring.ReasonNone, d.Reason == scoring.ReasonNothingFits && d.Late != nil
	dryRun := cfg.Mode == config.ModeDryRun
	if !ranked && !late {
		return parts{annotationsOnly: dryRun}, s.ours.any() && isVerdict(d.Reason)
	}
	if dryRun {
		p := parts{annotations: map[string]string{config.AnnotationSteering: config.SteeringDryRun}, annotationsOnly: true}
		p.addRanking(d, cfg)
		return p, true
	}
	p := parts{
		neutral:     d.NeutralizeSpreading && len(s.user.Spec.TopologySpreadConstraints) == 0,
		late:        d.Late,
		annotations: map[string]string{config.AnnotationSteering: config.SteeringLate},
	}
	if ranked {
		p.annotations[config.AnnotationSteering] = config.SteeringRanked
		p.annotations[config.AnnotationTarget] = d.Target()
		p.annotations[config.AnnotationAdmission] = string(d.UID)
		p.addRanking(d, cfg)
		p.terms = terms(d.Ranking)
	}
	return p, true
}

// isVerdict tells whether the reason is a finding about the pod and the cluster,
// so that parts from an earlier decision are stale: on a copy, or because another
// webhook has changed the pod since. Otherwise (not synced, no GPU, opted out) the
// pod stays as it is.
func isVerdict(r scoring.Reason) bool {
	switch r {
	case scoring.ReasonNothingFits, scoring.ReasonPinned, scoring.ReasonUserPreference, scoring.ReasonUnknownResource,
		ReasonSpread, ReasonGated, ReasonPodGroup, ReasonOtherScheduler:
		return true
	default:
		return false
	}
}

// fitAnnotations makes the annotations fit what the API allows one object: the
// ranking goes first, since it is only information. It returns false when even the
// rest is too much.
func (p *parts) fitAnnotations(s *submission) bool {
	all := maps.Clone(s.pod.Annotations)
	for _, key := range s.ours.annotations {
		delete(all, key)
	}
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, p.annotations)
	if apivalidation.ValidateAnnotationsSize(all) == nil {
		return true
	}
	delete(all, config.AnnotationRanking)
	delete(p.annotations, config.AnnotationRanking)
	return len(p.annotations) == 0 || apivalidation.ValidateAnnotationsSize(all) == nil
}

func (p *parts) addRanking(d *scoring.Decision, cfg config.Configuration) {
	if cfg.Annotations != config.AnnotationsFull || len(d.Ranking) == 0 {
		return
	}
	ranking := rankingAnnotation{Strategy: cfg.Ranking.Strategy, Tail: d.Tail}
	// The tail of a large cluster's list would multiply the pod's size.
	for _, n := range d.Ranking[:len(d.Ranking)-d.Tail] {
		ranking.Nodes = append(ranking.Nodes, rankedNode(n))
	}
	if text, err := json.Marshal(ranking); err == nil {
		p.annotations[config.AnnotationRanking] = string(text)
	}
}

// rankingAnnotation is the content of the ranking annotation.
type rankingAnnotation struct {
	Strategy config.Strategy `json:"strategy"`
	Nodes    []rankedNode    `json:"nodes"`
	// Tail is how many more nodes have a term, all with the same low weight.
	Tail int `json:"tail,omitempty"`
}

type rankedNode struct {
	Name      string `json:"name"`
	Score     int64  `json:"score"`
	FreeAfter int64  `json:"freeAfter"`
	Weight    int32  `json:"weight"`
}

// terms returns one preferred term per ranked node. The form matters: by name of
// the node, not by hostname label, which is not the node's identity and which
// Karpenter takes for a requirement.
func terms(ranking []scoring.RankedNode) []corev1.PreferredSchedulingTerm {
	out := make([]corev1.PreferredSchedulingTerm, len(ranking))
	for i, n := range ranking {
		out[i] = corev1.PreferredSchedulingTerm{
			Weight: n.Weight,
			Preference: corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{
				Key:      "metadata.name",
				Operator: corev1.NodeSelectorOpIn,
				Values:   []string{n.Name},
			}}},
		}
	}
	return out
}

// valid checks the terms against the API's own rules: an invalid one would make
// the API server refuse the pod.
func (p *parts) valid() bool {
	for i := range p.terms {
		name := p.terms[i].Preference.MatchFields[0].Values[0]
		if w := p.terms[i].Weight; w < 1 || w > 100 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return false
		}
	}
	return true
}

// operations turns the parts into operations on the submitted pod.
func (p *parts) operations(s *submission) []operation {
	var b builder
	b.annotations(s, p.annotations)
	if !p.annotationsOnly {
		b.nodeTerms(s, p.terms)
		b.podAffinity(s, p.late)
		b.spread(s, p.neutral)
		b.labels(s, p.late)
	}
	return b.ops
}

// builder collects operations.
type builder struct {
	ops []operation
	// affinity is true once the pod has an affinity object, from itself or from
	// an operation.
	affinity bool
}

func (b *builder) add(path string, value any) {
	b.ops = append(b.ops, operation{Op: "add", Path: path, Value: value})
}

// removeAt removes elements of a list, or the whole list when nothing would be
// left. It returns whether the list still has elements.
func (b *builder) removeAt(path string, indices []int, length int) bool {
	if length > 0 && len(indices) == length {
		b.ops = append(b.ops, operation{Op: "remove", Path: path})
		return false
	}
	for _, i := range slices.Backward(indices) {
		b.ops = append(b.ops, operation{Op: "remove", Path: path + "/" + strconv.Itoa(i)})
	}
	return length > 0
}

// ensureAffinity makes sure that the affinity object is there. Adding to a
// missing parent does not apply; adding over an explicit null does.
func (b *builder) ensureAffinity(s *submission) {
	if s.pod.Spec.Affinity == nil && !b.affinity {
		b.add(pathAffinity, struct{}{})
	}
	b.affinity = true
}

func (b *builder) nodeTerms(s *submission, wanted []corev1.PreferredSchedulingTerm) {
	has := false
	exists := s.pod.Spec.Affinity != nil && s.pod.Spec.Affinity.NodeAffinity != nil
	if exists {
		has = b.removeAt(pathPreferredNodes, s.ours.terms, len(s.pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution))
	}
	if len(wanted) == 0 {
		return
	}
	b.ensureAffinity(s)
	switch {
	case !exists:
		b.add(pathNodeAffinity, corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: wanted})
	case !has:
		b.add(pathPreferredNodes, wanted)
	default:
		for i := range wanted {
			b.add(pathPreferredNodes+"/-", wanted[i])
		}
	}
}

func (b *builder) podAffinity(s *submission, late *scoring.Late) {
	has := false
	exists := s.pod.Spec.Affinity != nil && s.pod.Spec.Affinity.PodAffinity != nil
	if exists {
		has = b.removeAt(pathPreferredPods, s.ours.affinities, len(s.pod.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution))
	}
	if late == nil {
		return
	}
	b.ensureAffinity(s)
	wanted := []corev1.WeightedPodAffinityTerm{late.Term()}
	switch {
	case !exists:
		b.add(pathPodAffinity, corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: wanted})
	case !has:
		b.add(pathPreferredPods, wanted)
	default:
		b.add(pathPreferredPods+"/-", wanted[0])
	}
}

func (b *builder) spread(s *submission, neutral bool) {
	has := len(s.ours.constraints) > 0
	if has && !neutral {
		b.removeAt(pathSpread, s.ours.constraints, len(s.pod.Spec.TopologySpreadConstraints))
	}
	if neutral && !has {
		b.add(pathSpread, []corev1.TopologySpreadConstraint{scoring.NeutralConstraint()})
	}
}

func (b *builder) annotations(s *submission, wanted map[string]string) {
	for _, key := range s.ours.annotations {
		if _, stays := wanted[key]; !stays {
			b.ops = append(b.ops, operation{Op: "remove", Path: pathAnnotations + "/" + escape(key)})
		}
	}
	if len(wanted) > 0 && s.pod.Annotations == nil {
		b.add(pathAnnotations, struct{}{})
	}
	// In a fixed order, so that the same decision gives the same patch.
	for _, key := range []string{config.AnnotationSteering, config.AnnotationTarget, config.AnnotationAdmission, config.AnnotationRanking} {
		if value, ok := wanted[key]; ok {
			b.add(pathAnnotations+"/"+escape(key), value)
		}
	}
}

func (b *builder) labels(s *submission, late *scoring.Late) {
	if late == nil {
		for _, key := range s.ours.labels {
			b.ops = append(b.ops, operation{Op: "remove", Path: pathLabels + "/" + escape(key)})
		}
		return
	}
	if s.pod.Labels == nil {
		b.add(pathLabels, struct{}{})
	}
	b.add(pathLabels+"/"+escape(config.LabelLate), late.LabelValue)
}

// escape writes a key as a JSON pointer token (RFC 6901).
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}
