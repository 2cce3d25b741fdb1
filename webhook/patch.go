package webhook

import (
	"encoding/json/v2"
	"maps"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// buildPatch turns a decision into a JSON patch for the submitted pod, nil when
// there is nothing to change. Parts we added earlier are replaced; the user's
// stay as they are, byte for byte, at their place.
func buildPatch(s *submission, d *scoring.Decision, cfg config.Configuration) ([]byte, steering.Reason) {
	wanted, ok := wantedParts(s, d, cfg)
	if !ok {
		return nil, steering.ReasonNone
	}
	if !wanted.Terms.Valid() {
		return nil, steering.ReasonPatch
	}
	if !fitAnnotations(&wanted, s) {
		return nil, steering.ReasonTooLarge
	}
	operations := steering.Operations(s.pod, &s.own, &wanted)
	if len(operations) == 0 {
		return nil, steering.ReasonNone
	}
	return encode(s, operations)
}

// wantedParts returns what the pod is to have of us after this decision. It is
// false when the pod is not to be touched at all.
func wantedParts(s *submission, d *scoring.Decision, cfg config.Configuration) (steering.Parts, bool) {
	ranked, late := d.Reason == steering.ReasonNone, d.Reason == steering.ReasonNothingFits && d.Late != nil
	dryRun := cfg.Mode == config.ModeDryRun
	if !ranked && !late {
		return steering.Parts{AnnotationsOnly: dryRun}, s.own.Any() && isVerdict(d.Reason)
	}
	if dryRun {
		p := steering.Parts{Annotations: map[string]string{config.AnnotationSteering: config.SteeringDryRun}, AnnotationsOnly: true}
		addRanking(&p, d, cfg)
		return p, true
	}
	p := steering.Parts{
		Neutral:     d.NeutralizeSpreading && len(s.user.Spec.TopologySpreadConstraints) == 0,
		Late:        d.Late,
		Annotations: map[string]string{config.AnnotationSteering: config.SteeringLate},
	}
	if ranked {
		p.Annotations[config.AnnotationSteering] = config.SteeringRanked
		p.Annotations[config.AnnotationTarget] = d.Target()
		p.Annotations[config.AnnotationAdmission] = string(d.UID)
		addRanking(&p, d, cfg)
		p.Terms = make(steering.Terms, len(d.Ranking))
		for i := range d.Ranking {
			p.Terms[i] = steering.Term{Node: d.Ranking[i].Name, Weight: d.Ranking[i].Weight}
		}
	}
	return p, true
}

// isVerdict tells whether the reason is a finding about the pod and the cluster,
// so that parts from an earlier decision are stale: on a copy, or because another
// webhook has changed the pod since. Otherwise (not synced, no GPU, opted out) the
// pod stays as it is.
func isVerdict(r steering.Reason) bool {
	switch r {
	case steering.ReasonNothingFits, steering.ReasonPinned, steering.ReasonUserPreference, steering.ReasonUnknownResource,
		steering.ReasonSpread, steering.ReasonGated, steering.ReasonPodGroup, steering.ReasonOtherScheduler:
		return true
	default:
		return false
	}
}

// fitAnnotations makes the annotations fit what the API allows one object: the
// ranking goes first, since it is only information. It returns false when even the
// rest is too much.
func fitAnnotations(p *steering.Parts, s *submission) bool {
	all := maps.Clone(s.pod.Annotations)
	for _, key := range s.own.Annotations() {
		delete(all, key)
	}
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, p.Annotations)
	if apivalidation.ValidateAnnotationsSize(all) == nil {
		return true
	}
	delete(all, config.AnnotationRanking)
	delete(p.Annotations, config.AnnotationRanking)
	return len(p.Annotations) == 0 || apivalidation.ValidateAnnotationsSize(all) == nil
}

func addRanking(p *steering.Parts, d *scoring.Decision, cfg config.Configuration) {
	if cfg.Annotations != config.AnnotationsFull || len(d.Ranking) == 0 {
		return
	}
	// The tail of a large cluster's list would multiply the pod's size.
	head := d.Ranking[:len(d.Ranking)-d.Tail]
	ranking := rankingAnnotation{Strategy: cfg.Ranking.Strategy, Tail: d.Tail, Nodes: make([]rankedNode, len(head))}
	for i, n := range head {
		ranking.Nodes[i] = rankedNode(n)
	}
	if text, err := json.Marshal(ranking, written); err == nil {
		p.Annotations[config.AnnotationRanking] = string(text)
	}
}

// rankingAnnotation is the content of the ranking annotation.
type rankingAnnotation struct {
	Strategy config.Strategy `json:"strategy"`
	Nodes    []rankedNode    `json:"nodes"`
	// Tail is how many more nodes have a term, all with the same low weight.
	Tail int `json:"tail,omitzero"`
}

type rankedNode struct {
	Name      string `json:"name"`
	Score     int64  `json:"score"`
	FreeAfter int64  `json:"freeAfter"`
	Weight    int32  `json:"weight"`
}
