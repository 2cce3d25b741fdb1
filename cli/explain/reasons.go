package explain

import (
	"fmt"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// reasonTexts say in words why a pod gets no ranking.
var reasonTexts = map[steering.Reason]string{
	steering.ReasonNoGPU:               "it asks for no configured GPU resource",
	steering.ReasonInvalidRequest:      "it asks for GPUs in a quantity that is negative, fractional or too large, and the API server refuses such a pod",
	steering.ReasonInvalidAffinity:     "its node affinity does not parse or has a weight outside 1 to 100, and the API server refuses such a pod",
	steering.ReasonNotSynced:           "the webhook has not seen all nodes and pods yet",
	steering.ReasonPinned:              "only one node matches its required affinity, so there is nothing to choose",
	steering.ReasonNothingFits:         "no node can take it now, and it gets no late steering: that is off, or the pod has preferences of its own, for nodes or pods",
	steering.ReasonUserPreference:      "its own preferred node terms leave no weight for others that could not reverse them",
	steering.ReasonUnknownResource:     "it also asks for an extended resource that no node offers; probably another system shares out its GPUs",
	steering.ReasonTimeout:             "the decision took too long",
	steering.ReasonTooLarge:            "it has more bytes, resources or terms like ours than a decision goes through",
	steering.ReasonConstraintsTooLarge: "its node selector, tolerations and node affinity are too many or too long to be compared with every node",
	steering.ReasonNotPodCreate:        "the request is not the creation of a pod",
	steering.ReasonUndecodable:         "it does not decode as a pod, and the API server will judge it",
	steering.ReasonBound:               "spec.nodeName is set, so the scheduler is not asked",
	steering.ReasonNodePod:             "its node is given: it is a pod of a DaemonSet, of a node, or a static one",
	steering.ReasonOtherScheduler:      "spec.schedulerName is not one of schedulerNames in the configuration",
	steering.ReasonGated:               "it has scheduling gates, and a ranking would be stale when they open",
	steering.ReasonOptedOut:            "it has opted out with the label " + config.LabelEnabled + "=false",
	steering.ReasonPodGroup:            "it belongs to Kueue as a plain pod, and such pods must stay alike",
	steering.ReasonSpread:              "it asks to be spread, by topology spread constraints or pod anti-affinity of its own; spreading.userConstraints: Ignore in the configuration steers it all the same",
	steering.ReasonPatch:               "the patch would not have been valid; this is a bug, please report it",
	steering.ReasonPanic:               "deciding failed; this is a bug, please report it",
}

// reasonText never is empty, so that a reason without words is seen at least.
func reasonText(reason steering.Reason) string {
	if text := reasonTexts[reason]; text != "" {
		return text
	}
	return string(reason)
}

// text is the decision in a sentence.
func (v *verdict) text() string {
	d := &v.Decision
	switch v.steering {
	case config.SteeringRanked:
		return fmt.Sprintf("steered to %s: %s", d.Target(), v.listed())
	case config.SteeringLate:
		return "nothing has room now: it gets a soft affinity to the other pods that wait (late steering), which the scheduler evaluates when there is room"
	case config.SteeringDryRun:
		if d.Target() == "" {
			return "annotated only (mode DryRun): nothing has room now, and it would get late steering"
		}
		return fmt.Sprintf("annotated only (mode DryRun): it would be steered to %s: %s", d.Target(), v.listed())
	default:
		return "left alone: " + reasonText(v.reason)
	}
}

// listed says how many of the candidates have a weight.
func (v *verdict) listed() string {
	d := &v.Decision
	text := terminal.Count(len(v.Candidates), "node") + " can take it, "
	if len(d.Ranking) == len(v.Candidates) {
		text += "each with a weight"
	} else {
		text += fmt.Sprintf("%d of them with a weight", len(d.Ranking))
	}
	if d.Tail > 0 {
		text += fmt.Sprintf(", the last %d the same low one", d.Tail)
	}
	if d.UnlistedMayWin {
		text += "; the other points of the scheduler may still favour a node without one"
	}
	return text
}
