package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	scan "github.com/gpu-binpacker/gpu-binpacker/test/bench/naive"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, tc := range []struct {
		sorted []time.Duration
		part   float64
		want   time.Duration
	}{
		{nil, 0.5, 0},
		{hundred[:1], 0.99, 1},
		{hundred[:3], 0.5, 2}, // 2 of 3 do not exceed it, 1 of 3 is too few
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := percentile(tc.sorted, tc.part); got != tc.want {
			t.Errorf("%v of %d: %d, want %d", tc.part, len(tc.sorted), got, tc.want)
		}
	}
}

func TestSummarize(t *testing.T) {
	runs := []loadResult{
		{P50Micros: 3, P99Micros: 30, RequestsPerSecond: 1, Unpatched: 1},
		{P50Micros: 1, P99Micros: 10, RequestsPerSecond: 3, SaturationDryRun: true},
		{P50Micros: 2, P99Micros: 90, RequestsPerSecond: 2, Unpatched: 1},
	}
	got := summarize(runs, cluster.Find("homogeneous"), 10, ours)
	want := result{Nodes: 10, Pods: 300, Shape: "homogeneous", System: ours, Runs: 3, loadResult: loadResult{
		P50Micros: 2, P99Micros: 30, RequestsPerSecond: 2, SaturationDryRun: true, Unpatched: 2,
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
	var table strings.Builder
	if err := writeTable(&table, []result{{System: noop, loadResult: loadResult{P50Micros: 4}}, got}); err != nil || !strings.Contains(table.String(), "0.50") {
		t.Errorf("%v\n%s", err, &table)
	}
	if data, err := json.Marshal(got); err != nil || !strings.Contains(string(data), `"p50Micros":2,`) {
		t.Errorf("%s, %v", data, err)
	}
}

func TestNeedsDryRun(t *testing.T) {
	for _, tc := range []struct {
		rate     float64
		duration time.Duration
		free     float64
		want     bool
	}{
		{100, 10 * time.Second, 1000, false}, // 5 s of them last: 500, half of what is free
		{101, 10 * time.Second, 1000, true},
		{101, 2 * time.Second, 1000, false},
		{1, time.Second, 0, true},
	} {
		if got := needsDryRun(tc.rate, tc.duration, tc.free); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// The other webhooks give right answers through the product's server, and the load
// generator sees when they do not.
func TestOthersAnswer(t *testing.T) {
	shape := cluster.Find("1%-selector")
	shared := metrics.New(ctrlmetrics.Registry)
	for name, handler := range map[string]admission.Handler{noop: noopHandler{}, naive: &naiveHandler{cluster: scan.New(shape, 200)}} {
		wet, dry, err := readReviews("../../../"+cluster.TrainerFile, shape.Selector)
		if err != nil {
			t.Fatal(err)
		}
		reviews := server.New(handler, shared, logr.Discard(), 1, time.Minute)
		body := post(t.Context(), reviews, wet)
		c := checker{name, shape}
		if err := c.check(body, placeholder); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.glance(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.check(body, "other"); err == nil {
			t.Errorf("%s: the answer to another request is taken", name)
		}
		if err := (&checker{ours, shape}).glance(body); (err == nil) != (name == naive) {
			t.Errorf("%s for ours: %v", name, err)
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(dry, &review); err != nil || !*review.Request.DryRun {
			t.Errorf("%v, %v", review.Request, err)
		}
		var pod corev1.Pod
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil || pod.Spec.NodeSelector["pool"] != "rare" {
			t.Errorf("%v, %v", pod.Spec.NodeSelector, err)
		}
	}
}

func post(ctx context.Context, reviews http.Handler, body []byte) []byte {
	r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	reviews.ServeHTTP(w, r)
	return w.Body.Bytes()
}
