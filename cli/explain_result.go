package cli

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Explanation is what explain prints with -o json and -o yaml.
type Explanation struct {
	metav1.TypeMeta `json:",inline"`
	// TakenAt is when the cluster was read.
	TakenAt metav1.Time `json:"takenAt"`
	// Pod is what is explained.
	Pod ExplainedPod `json:"pod"`
	// Admission is what was decided when the pod was created and where it landed;
	// only for an existing pod.
	Admission *ExplainedAdmission `json:"admission,omitempty"`
	// Webhook says whether the API server would call the webhook. If not, the rest
	// is what would be decided if it did.
	Webhook ExplainedCall `json:"webhook"`
	// Scheduler is by which version of kube-scheduler weights and points are computed.
	Scheduler ExplainedScheduler `json:"scheduler"`
	// Decision is what would be decided now if the pod were new.
	Decision ExplainedDecision `json:"decision"`
	// Candidates can take the pod, in the order in which they are to be filled.
	Candidates []ExplainedCandidate `json:"candidates"`
	// LeftOut are all other nodes, sorted by name.
	LeftOut []ExplainedLeftOut `json:"leftOut"`
	// Patch is the JSON patch for the pod, empty when it is left as it is. The UID in
	// gpu-binpacker.io/admission is that of the request, zeros here.
	Patch []json.RawMessage `json:"patch"`
}

// ExplainedPod is the pod and what it asks for.
type ExplainedPod struct {
	Namespace string `json:"namespace"`
	// Name is empty in a pod that gets its name when it is stored.
	Name string `json:"name,omitempty"`
	// GenerateName is what such a name begins with.
	GenerateName string `json:"generateName,omitempty"`
	// Source says where the pod is from.
	Source string `json:"source"`
	// Requests are those of the pod as a whole: resource name -> quantity.
	Requests corev1.ResourceList `json:"requests"`
}

// ExplainedScheduler is the version that the model of kube-scheduler has.
type ExplainedScheduler struct {
	// KubernetesVersion is "major.minor".
	KubernetesVersion string `json:"kubernetesVersion"`
	// Source is configured (scheduler.kubernetesVersion), server (the API server's
	// version) or assumed (neither is known, so that it is the newest).
	Source scheduler.VersionSource `json:"source"`
}

// ExplainedCall says whether the webhook would be called.
type ExplainedCall struct {
	Called bool `json:"called"`
	// Because are the reasons why not, Fixes what to do about each.
	Because []string `json:"because,omitempty"`
	Fixes   []string `json:"fixes,omitempty"`
}

// ExplainedDecision is a decision in words and numbers.
type ExplainedDecision struct {
	// Steering is ranked, late, dry-run or none.
	Steering string `json:"steering"`
	// Reason says why there is no ranking: a word, as in the metrics.
	Reason steering.Reason `json:"reason,omitempty"`
	// Text is all this in a sentence.
	Text string `json:"text"`
	// Target is the node where the pod would be expected.
	Target string `json:"target,omitempty"`
	// Listed is how many nodes have a weight; the last Tail of them share one.
	Listed int `json:"listed"`
	Tail   int `json:"tail,omitempty"`
	// UnlistedMayWin: the scheduler may favour a node without a weight.
	UnlistedMayWin bool `json:"unlistedMayWin,omitempty"`
	// Predicted are the nodes with the most predicted points, sorted by name; the
	// scheduler chooses among equals at random.
	Predicted []string `json:"predicted,omitempty"`
}

// ExplainedCandidate is a node that can take the pod.
type ExplainedCandidate struct {
	// Rank counts from 1.
	Rank int    `json:"rank"`
	Node string `json:"node"`
	// GPUs are those that the pod asks for, before placement.
	GPUs []ExplainedUse `json:"gpus"`
	// Score is 100*used/allocatable before placement and LeftAfter how many GPUs are
	// free after it, both of the tightest GPU resource.
	Score     int64 `json:"score"`
	LeftAfter int64 `json:"leftAfter"`
	// MilliCPULeftAfter and MemoryLeftAfter (bytes) are free after placement.
	MilliCPULeftAfter int64 `json:"milliCPULeftAfter"`
	MemoryLeftAfter   int64 `json:"memoryLeftAfter"`
	// Weight is that of the node's term, 1 to 100; 0 for none.
	Weight int32 `json:"weight"`
	// UserScore is the sum of the weights of the pod's own preferred terms that
	// match; SoftTaints is the number of PreferNoSchedule taints not tolerated.
	UserScore  int64 `json:"userScore,omitempty"`
	SoftTaints int64 `json:"softTaints,omitempty"`
	// Points are the predicted ones of the scheduler, for the pod with the patch.
	Points ExplainedPoints `json:"points"`
}

// ExplainedUse is how much of a resource is used by pods, expected ones included.
type ExplainedUse struct {
	Resource    string `json:"resource"`
	Used        int64  `json:"used"`
	Allocatable int64  `json:"allocatable"`
}

// ExplainedPoints are 0 to 100 for each of the scheduler's plugins and their sum
// with the configured plugin weights. Spreading and inter-pod affinity are not
// in it.
type ExplainedPoints struct {
	NodeAffinity       int64 `json:"nodeAffinity"`
	TaintToleration    int64 `json:"taintToleration"`
	NodeResourcesFit   int64 `json:"nodeResourcesFit"`
	BalancedAllocation int64 `json:"balancedAllocation"`
	ImageLocality      int64 `json:"imageLocality"`
	Total              int64 `json:"total"`
}

// ExplainedLeftOut is a node that the pod should not or cannot go to.
type ExplainedLeftOut struct {
	Node   string       `json:"node"`
	Reason nodes.Reason `json:"reason"`
	// Lacking are the resources that the node has too little of.
	Lacking []ExplainedShortage `json:"lacking,omitempty"`
}

// ExplainedShortage is in whole units: CPU in millicores, memory in bytes.
type ExplainedShortage struct {
	Resource  string `json:"resource"`
	Requested int64  `json:"requested"`
	Free      int64  `json:"free"`
}

// explain makes the explanation of a pod.
func explain(ctx context.Context, w *observed, s *subject) (*Explanation, error) {
	index, err := w.state.Index(w.cfg)
	if err != nil {
		return nil, err
	}
	scorer := w.state.Scorer(w.cfg, index)
	v, err := decide(ctx, w.cfg, scorer, s.pod)
	if err != nil {
		return nil, err
	}
	requests := resourcehelper.PodRequests(s.pod, resourcehelper.PodResourcesOptions{})
	e := &Explanation{
		TypeMeta: metav1.TypeMeta{APIVersion: config.APIVersion, Kind: "Explanation"},
		TakenAt:  w.state.TakenAt,
		Pod: ExplainedPod{
			Namespace: s.pod.Namespace, Name: s.pod.Name, GenerateName: s.pod.GenerateName,
			Source: s.source, Requests: requests,
		},
		Webhook:   ExplainedCall{Called: true},
		Scheduler: ExplainedScheduler{scorer.Version().Held()[0].String(), scorer.Version().Source()},
		Decision: ExplainedDecision{
			Steering: v.steering, Reason: v.reason, Text: v.text(), Target: v.Decision.Target(),
			Listed: len(v.Decision.Ranking), Tail: v.Decision.Tail, UnlistedMayWin: v.Decision.UnlistedMayWin,
		},
		Patch: []json.RawMessage{},
	}
	if s.existing != nil {
		e.Pod.Name, e.Pod.GenerateName, e.Pod.Source = s.existing.Name, "", "existing"
		e.Admission = pastOf(s.existing)
	}
	for _, o := range obstacles(w, s.pod) {
		e.Webhook.Called = false
		e.Webhook.Because = append(e.Webhook.Because, o.because)
		e.Webhook.Fixes = append(e.Webhook.Fixes, o.fix)
	}
	if v.patch != nil {
		if err := json.Unmarshal(v.patch, &e.Patch); err != nil {
			return nil, err
		}
	}
	e.addNodes(scorer, v, requests)
	return e, nil
}

// addNodes adds the candidates with their predicted points and the nodes that are
// left out.
func (e *Explanation) addNodes(scorer *scoring.Scorer, v *verdict, requests corev1.ResourceList) {
	predicted, _ := scorer.Predict(v.patched)
	points := map[string]ExplainedPoints{}
	var most int64
	for _, p := range predicted {
		points[p.Name] = ExplainedPoints{
			p.NodeAffinity, p.TaintToleration, p.NodeResourcesFit, p.BalancedAllocation, p.ImageLocality, p.Total,
		}
		most = max(most, p.Total)
	}
	for _, p := range predicted {
		if p.Total == most {
			e.Decision.Predicted = append(e.Decision.Predicted, p.Name)
		}
	}
	weights := map[string]int32{}
	for _, n := range v.Decision.Ranking {
		weights[n.Name] = n.Weight
	}
	e.Candidates, e.LeftOut = []ExplainedCandidate{}, []ExplainedLeftOut{}
	for i, c := range v.Candidates {
		candidate := ExplainedCandidate{
			Rank: i + 1, Node: c.Name, GPUs: uses(c.GPUs), Score: c.Score, LeftAfter: c.FreeAfter,
			MilliCPULeftAfter: c.FreeMilliCPU - requests.Cpu().MilliValue(),
			MemoryLeftAfter:   c.FreeMemory - requests.Memory().Value(),
			Weight:            weights[c.Name], UserScore: c.UserScore, SoftTaints: c.SoftTaints, Points: points[c.Name],
		}
		e.Candidates = append(e.Candidates, candidate)
	}
	for _, n := range v.LeftOut {
		out := ExplainedLeftOut{Node: n.Name, Reason: n.Reason}
		for _, l := range n.Lacking {
			out.Lacking = append(out.Lacking, ExplainedShortage{string(l.Name), l.Requested, l.Free})
		}
		e.LeftOut = append(e.LeftOut, out)
	}
}

func uses(gpus []nodes.ResourceUse) []ExplainedUse {
	list := make([]ExplainedUse, len(gpus))
	for i, g := range gpus {
		list[i] = ExplainedUse{string(g.Name), g.Allocated, g.Allocatable}
	}
	return list
}
