package webhook

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// testStart is where the clocks of the tests begin.
var testStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// firstUID is the UID of the request that podCreate makes.
const firstUID types.UID = "0f5c5d2e-8d9b-4b7c-9a51-000000000001"

// testBed is a real handler on a real, synced index, with a clock that stands
// still until a test moves it.
type testBed struct {
	*Handler
	ix       *index.Index
	registry *prometheus.Registry
	log      *reviewtest.Log
	clock    time.Time
}

// newBed builds a cluster from nodes and pods.
func newBed(t testing.TB, cfg config.Configuration, namespaces []string, objects ...any) *testBed {
	t.Helper()
	if errs := config.Validate(cfg); len(errs) > 0 {
		t.Fatalf("configuration of the test: %v", errs.ToAggregate())
	}
	// A busy machine must not change what comes of a pod.
	cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Minute}
	bed := &testBed{registry: prometheus.NewRegistry(), log: &reviewtest.Log{}, clock: testStart}
	ix, err := index.New(cfg, func() time.Time { return bed.clock })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range namespaces {
		ix.SetNamespace(name, true)
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Node:
			ix.SetNode(o)
		case *corev1.Pod:
			if o.UID == "" {
				o.UID = types.UID(o.Namespace + "/" + o.Name)
			}
			ix.SetPod(o)
		default:
			t.Fatalf("unknown object %T", o)
		}
	}
	ix.SetSynced()
	bed.ix = ix
	bed.Handler = NewHandler(cfg, scoring.NewScorer(cfg, ix), metrics.New(bed.registry), bed.log.Logger())
	return bed
}

// podCreate is the API server's request for the creation of a pod in team-a.
func podCreate(raw []byte) admission.Request {
	dryRun := false
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       firstUID,
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: "team-a",
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
		DryRun:    &dryRun,
	}}
}

// decisions returns the decision metric: steering/reason/dry_run -> count. Series that
// are there before anything was counted are left out.
func decisions(t testing.TB, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "gpu_binpacker_decisions_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, pair := range metric.GetLabel() {
				labels[pair.GetName()] = pair.GetValue()
			}
			key := strings.Join([]string{labels["steering"], labels["reason"], labels["dry_run"]}, "/")
			if count := metric.GetCounter().GetValue(); count > 0 {
				counts[key] = count
			}
		}
	}
	return counts
}

// onlyDecision returns steering and reason of the one decision that was counted.
func (b *testBed) onlyDecision(t testing.TB) (steering, reason string) {
	t.Helper()
	counts := decisions(t, b.registry)
	if len(counts) != 1 {
		t.Fatalf("decisions %v, want exactly one", counts)
	}
	for key, count := range counts {
		if count != 1 {
			t.Errorf("decision %s was counted %v times", key, count)
		}
		parts := strings.Split(key, "/")
		steering, reason = parts[0], parts[1]
	}
	return steering, reason
}

// deciderFunc is a Decider for tests.
type deciderFunc func(scoring.Request) scoring.Decision

func (f deciderFunc) Decide(_ context.Context, r scoring.Request) scoring.Decision { return f(r) }

// bedWithRoom is a bed with one node that has so many GPUs free.
func bedWithRoom(t testing.TB, gpus int64) *testBed {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "g1"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{
			corev1.ResourcePods: *resource.NewQuantity(110, resource.DecimalSI),
			"nvidia.com/gpu":    *resource.NewQuantity(gpus, resource.DecimalSI),
		},
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}}
	return newBed(t, config.Default(), []string{"team-a"}, node)
}
