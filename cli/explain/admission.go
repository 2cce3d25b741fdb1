package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// Admission is what was decided about a pod when it was created, as its
// annotations and terms tell.
type Admission struct {
	// Steering is ranked, late, dry-run or none.
	Steering string `json:"steering"`
	// Target is the node where the pod was expected.
	Target string `json:"target,omitempty"`
	// Ranking is the annotation gpu-binpacker.io/ranking, when it is there.
	Ranking json.RawMessage `json:"ranking,omitempty"`
	// Listed are the nodes that the pod's terms name, by falling weight.
	Listed []Term `json:"listed,omitempty"`
	// Node is where the pod is, empty while it waits; Position is the node's place in
	// Listed, from 1; 0: it is not listed.
	Node     string `json:"node,omitempty"`
	Position int    `json:"position,omitempty"`
	// Waiting is why the scheduler has not placed it: reason and message of the
	// condition PodScheduled. State files have no messages.
	Waiting string `json:"waiting,omitempty"`
}

// Term is a preferred term that names a node.
type Term struct {
	Node   string `json:"node"`
	Weight int32  `json:"weight"`
}

// admissionOf reads what was decided from an existing pod.
func admissionOf(pod *corev1.Pod) *Admission {
	a := &Admission{
		Steering: cmp.Or(pod.Annotations[config.AnnotationSteering], webhook.SteeringNone),
		Target:   pod.Annotations[config.AnnotationTarget],
		Node:     pod.Spec.NodeName,
	}
	if ranking := pod.Annotations[config.AnnotationRanking]; json.Valid([]byte(ranking)) {
		a.Ranking = json.RawMessage(ranking) // anyone may have written it
	}
	terms := steering.PreferredTerms(pod)
	for i := range terms {
		if steering.IsTerm(&terms[i]) {
			a.Listed = append(a.Listed, Term{terms[i].Preference.MatchFields[0].Values[0], terms[i].Weight})
		}
	}
	slices.SortStableFunc(a.Listed, func(x, y Term) int { return cmp.Compare(y.Weight, x.Weight) })
	a.Position = 1 + slices.IndexFunc(a.Listed, func(t Term) bool { return t.Node == a.Node })
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			a.Waiting = c.Reason
			if c.Message != "" {
				a.Waiting += ": " + c.Message
			}
		}
	}
	return a
}

// decided says what came of the pod's admission.
func (a *Admission) decided() string {
	switch a.Steering {
	case config.SteeringRanked:
		terms := make([]string, len(a.Listed))
		for i, t := range a.Listed {
			terms[i] = fmt.Sprintf("%s %d", t.Node, t.Weight)
		}
		return fmt.Sprintf("when created: steered to %s; weights: %s", a.Target, terminal.Few(terms, 4))
	case config.SteeringLate:
		return "when created: nothing had room, so late steering, which names no node"
	case config.SteeringDryRun:
		return "when created: annotated only (mode DryRun)"
	default:
		return "when created: not steered; it has no annotation of gpu-binpacker"
	}
}

// landed says where the pod is.
func (a *Admission) landed() string {
	switch {
	case a.Node == "" && a.Waiting != "":
		return "nowhere yet: " + a.Waiting
	case a.Node == "":
		return "nowhere yet: the scheduler has not looked at it"
	case a.Steering != config.SteeringRanked:
		return "on " + a.Node
	case a.Node == a.Target:
		return fmt.Sprintf("on %s, its target", a.Node)
	case a.Position > 0:
		return fmt.Sprintf("on %s, number %d of its %d listed nodes", a.Node, a.Position, len(a.Listed))
	default:
		return fmt.Sprintf("on %s, which is not among its listed nodes", a.Node)
	}
}
