package explain

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// Cluster is where a pod is explained.
type Cluster struct {
	State  *state.State
	Config config.Configuration
	// Uninstalled: the cluster has no configuration of the webhook.
	Uninstalled bool
}

// New makes the explanation of a pod. An existing one is taken out of the cluster first:
// what it uses now is there for it to use.
func New(ctx context.Context, c Cluster, s *Subject) (*Explanation, error) {
	scorer, err := c.scorer(s.existing)
	if err != nil {
		return nil, err
	}
	v, err := decide(ctx, c.Config, scorer, s.Pod)
	if err != nil {
		return nil, err
	}
	e := &Explanation{
		TypeMeta:  metav1.TypeMeta{APIVersion: config.APIVersion, Kind: "Explanation"},
		TakenAt:   c.State.TakenAt,
		Pod:       s.explained(),
		Webhook:   c.call(s.Pod),
		Scheduler: Scheduler{scorer.Version().Held()[0].String(), scorer.Version().Source()},
		Decision: Decision{
			Steering: v.steering, Reason: v.reason, Text: v.text(), Target: v.Decision.Target(),
			Listed: len(v.Decision.Ranking), Tail: v.Decision.Tail, UnlistedMayWin: v.Decision.UnlistedMayWin,
		},
		LeftOut: append([]scoring.LeftOutNode{}, v.LeftOut...),
		Patch:   []json.RawMessage{},
	}
	if s.existing != nil {
		e.Admission = admissionOf(s.existing)
	}
	if v.patch != nil {
		if err := json.Unmarshal(v.patch, &e.Patch); err != nil {
			return nil, err
		}
	}
	e.addCandidates(scorer, v)
	return e, nil
}

// scorer returns a scorer for the cluster without a pod, which may be nil.
func (c *Cluster) scorer(without *corev1.Pod) (*scoring.Scorer, error) {
	rest := *c.State
	if without != nil {
		rest.Pods = slices.DeleteFunc(slices.Clone(rest.Pods), func(p corev1.Pod) bool { return p.UID == without.UID })
	}
	ix, err := rest.Index(c.Config)
	if err != nil {
		return nil, err
	}
	return rest.Scorer(c.Config, ix), nil
}

// explained is the pod and what it asks for.
func (s *Subject) explained() Pod {
	p := Pod{
		Namespace: s.Pod.Namespace, Name: s.Pod.Name, GenerateName: s.Pod.GenerateName, Source: s.Source,
		Requests: resourcehelper.PodRequests(s.Pod, resourcehelper.PodResourcesOptions{}),
	}
	if s.existing != nil {
		p.GenerateName = ""
	}
	return p
}

// addCandidates adds the candidates and their predicted points.
func (e *Explanation) addCandidates(scorer *scoring.Scorer, v *verdict) {
	predicted, _ := scorer.Predict(v.patched)
	points := map[string]scheduler.Points{}
	var most int64
	for _, p := range predicted {
		points[p.Name] = p
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
	e.Candidates = []Candidate{}
	for i, c := range v.Candidates {
		e.Candidates = append(e.Candidates, Candidate{
			Rank: i + 1, Node: c.Name, GPUs: c.GPUs, Score: c.Score, LeftAfter: c.FreeAfter,
			MilliCPULeftAfter: c.FreeMilliCPU - e.Pod.Requests.Cpu().MilliValue(),
			MemoryLeftAfter:   c.FreeMemory - e.Pod.Requests.Memory().Value(),
			Weight:            weights[c.Name], UserScore: c.UserScore, SoftTaints: c.SoftTaints, Points: points[c.Name],
		})
	}
}
