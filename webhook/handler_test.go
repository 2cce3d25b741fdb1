package webhook

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// gpuPod is a pod that is ranked on any of the test clusters with room.
const gpuPod = reviewtest.Pod

// decide returns a Decider that always decides the same.
func decide(d scoring.Decision) deciderFunc {
	return func(scoring.Request) scoring.Decision { return d }
}

// ranked is a decision for the nodes, with falling weights.
func ranked(names ...string) scoring.Decision {
	d := scoring.Decision{Feasible: len(names), NeutralizeSpreading: true}
	for i, name := range names {
		d.Ranking = append(d.Ranking, scoring.RankedNode{Name: name, Weight: int32(100 - 10*i)})
	}
	return d
}

// handlerWith returns a bed whose handler asks the decider.
func handlerWith(t testing.TB, decider Decider) *testBed {
	t.Helper()
	bed := &testBed{registry: prometheus.NewRegistry(), log: &reviewtest.Log{}}
	bed.Handler = NewHandler(config.Default(), decider, metrics.New(bed.registry), bed.log.Logger())
	return bed
}

// Whatever goes wrong, the pod is allowed as it is, and the failure is counted.
func TestHandleNeverDenies(t *testing.T) {
	notPod := func(change func(*admissionv1.AdmissionRequest)) admission.Request {
		request := podCreate([]byte(gpuPod))
		change(&request.AdmissionRequest)
		return request
	}
	tests := map[string]struct {
		decider Decider
		request admission.Request
		want    steering.Reason
	}{
		"decider panics with text":     {decider: deciderFunc(func(scoring.Request) scoring.Decision { panic("boom") }), want: steering.ReasonPanic},
		"decider panics with an error": {decider: deciderFunc(func(scoring.Request) scoring.Decision { panic(fmt.Errorf("boom")) }), want: steering.ReasonPanic},
		"decider panics in the runtime": {decider: deciderFunc(func(r scoring.Request) scoring.Decision {
			return scoring.Decision{Feasible: len(r.Pod.Spec.Volumes[7].Name)}
		}), want: steering.ReasonPanic},
		"no decider":            {want: steering.ReasonPanic},
		"no object":             {request: podCreate(nil), want: steering.ReasonUndecodable},
		"null object":           {request: podCreate([]byte("null")), decider: decide(scoring.Decision{Reason: steering.ReasonNoGPU}), want: steering.ReasonNoGPU},
		"object is a list":      {request: podCreate([]byte(`[{}]`)), want: steering.ReasonUndecodable},
		"object is cut off":     {request: podCreate([]byte(gpuPod[:40])), want: steering.ReasonUndecodable},
		"object of wrong types": {request: podCreate([]byte(`{"metadata":{"labels":[1]}}`)), want: steering.ReasonUndecodable},
		"empty request":         {request: admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: firstUID}}, want: steering.ReasonNotPodCreate},
		"update":                {request: notPod(func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Update }), want: steering.ReasonNotPodCreate},
		"subresource":           {request: notPod(func(r *admissionv1.AdmissionRequest) { r.SubResource = "binding" }), want: steering.ReasonNotPodCreate},
		"other kind":            {request: notPod(func(r *admissionv1.AdmissionRequest) { r.Kind.Kind = "PodTemplate" }), want: steering.ReasonNotPodCreate},
		"other resource":        {request: notPod(func(r *admissionv1.AdmissionRequest) { r.Resource.Resource = "podtemplates" }), want: steering.ReasonNotPodCreate},
		"other group":           {request: notPod(func(r *admissionv1.AdmissionRequest) { r.Kind.Group, r.Resource.Group = "x.io", "x.io" }), want: steering.ReasonNotPodCreate},
		// Invalid decisions would make the API server refuse the pod: weights
		// outside 1..100, or a name that is none.
		"weight 0":         {decider: decide(scoring.Decision{Ranking: []scoring.RankedNode{{Name: "g1", Weight: 0}}}), want: steering.ReasonPatch},
		"weight 101":       {decider: decide(scoring.Decision{Ranking: []scoring.RankedNode{{Name: "g1", Weight: 101}}}), want: steering.ReasonPatch},
		"negative weight":  {decider: decide(scoring.Decision{Ranking: []scoring.RankedNode{{Name: "g1", Weight: -5}}}), want: steering.ReasonPatch},
		"no node name":     {decider: decide(ranked("")), want: steering.ReasonPatch},
		"no metadata":      {decider: decide(ranked("g1")), request: podCreate([]byte(`{"spec":{}}`)), want: steering.ReasonPatch},
		"spec is repeated": {decider: decide(ranked("g1")), request: podCreate([]byte(`{"metadata":{},"spec":{},"spec":null}`)), want: steering.ReasonUndecodable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bed := handlerWith(t, tc.decider)
			if tc.request.UID == "" {
				tc.request = podCreate([]byte(gpuPod))
			}
			response := bed.Handle(t.Context(), tc.request)
			want := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: tc.request.UID, Allowed: true}}
			if diff := cmp.Diff(want, response); diff != "" {
				t.Errorf("response (-want +got):\n%s", diff)
			}
			if how, reason := bed.onlyDecision(t); how != "none" || reason != string(tc.want) {
				t.Errorf("counted as %s/%s, want none/%s", how, reason, tc.want)
			}
		})
	}
}

func TestHandleBeforeSync(t *testing.T) {
	cfg, registry := config.Default(), prometheus.NewRegistry()
	ix, err := index.New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	bed := &testBed{registry: registry, log: &reviewtest.Log{}}
	bed.Handler = NewHandler(cfg, scoring.NewScorer(cfg, ix), metrics.New(registry), bed.log.Logger())
	// A copy of a steered pod as well: what is stale cannot be told yet.
	for _, raw := range []string{gpuPod, `{"metadata":{"annotations":{"` + config.AnnotationTarget + `":"g1"}},` + gpuPod[len(`{"metadata":{"name":"p"},`):]} {
		request := podCreate([]byte(raw))
		if response := bed.Handle(t.Context(), request); !response.Allowed || response.Patch != nil {
			t.Errorf("response %+v for %s", response, raw)
		}
	}
	if diff := cmp.Diff(map[string]float64{"none/NotSynced/false": 2}, decisions(t, registry)); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
}

// A decision that takes too long is not waited for.
func TestHandleTimeout(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx     context.Context
		timeout time.Duration
	}{
		"own deadline":                 {ctx: t.Context(), timeout: time.Millisecond},
		"the API server hung up":       {ctx: canceled, timeout: time.Hour},
		"the API server gave up first": {ctx: expired(t), timeout: time.Hour},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			release, ended := make(chan struct{}), make(chan struct{})
			bed := handlerWith(t, deciderFunc(func(scoring.Request) scoring.Decision {
				defer close(ended)
				<-release
				return ranked("g1")
			}))
			bed.cfg.Server.DecisionTimeout = metav1.Duration{Duration: tc.timeout}
			response := bed.Handle(tc.ctx, podCreate([]byte(gpuPod)))
			if !response.Allowed || response.Patch != nil {
				t.Errorf("response %+v", response)
			}
			if how, reason := bed.onlyDecision(t); how != "none" || reason != string(steering.ReasonTimeout) {
				t.Errorf("counted as %s/%s", how, reason)
			}
			if !strings.Contains(bed.log.Text(), string(steering.ReasonTimeout)) {
				t.Errorf("the timeout is not in the log: %s", bed.log.Text())
			}
			// The late decision ends by itself and changes nothing any more.
			close(release)
			<-ended
			if diff := cmp.Diff(map[string]float64{"none/Timeout/false": 1}, decisions(t, bed.registry)); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	t.Cleanup(cancel)
	return ctx
}

// What the decider is asked: the user's pod without our parts, the namespace of
// the request, the UID of the first admission.
func TestHandleRequest(t *testing.T) {
	var got scoring.Request
	bed := handlerWith(t, deciderFunc(func(r scoring.Request) scoring.Decision {
		got = r
		return scoring.Decision{Reason: steering.ReasonNoGPU}
	}))
	dryRun := true
	request := podCreate([]byte(`{"metadata":{"namespace":"wrong","annotations":{"gpu-binpacker.io/admission":"first"}},"spec":{"affinity":{"nodeAffinity":{` +
		`"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":9,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":["g1"]}]}}]}}}}`))
	request.DryRun, request.Namespace = &dryRun, "right"
	bed.Handle(t.Context(), request)
	if got.FirstUID != "first" || got.UID != request.UID || got.Namespace != "right" || !got.DryRun {
		t.Errorf("asked about %s, first %s, in %s, dry run %v", got.UID, got.FirstUID, got.Namespace, got.DryRun)
	}
	if terms := got.Pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(terms) > 0 {
		t.Errorf("the decider sees our own terms: %+v", terms)
	}
	request.DryRun = nil // optional in the API
	if bed.Handle(t.Context(), request); got.DryRun {
		t.Error("a request without dryRun is taken for a dry run")
	}
}
