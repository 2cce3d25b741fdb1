package server

import (
	"bytes"
	"runtime"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
)

// The estimate is no less than what a decoded body occupies.
func TestEstimate(t *testing.T) {
	many := func(element string) string { return element + strings.Repeat(","+element, 20_000) }
	const term = `{"weight":1,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":["g1"]}]}}`
	bodies := map[string]string{
		"a pod":                   reviewtest.Pod,
		"containers":              `{"spec":{"containers":[` + many(`{}`) + `]}}`,
		"ephemeral containers":    `{"spec":{"ephemeralContainers":[` + many(`{}`) + `]}}`,
		"volumes":                 `{"spec":{"volumes":[` + many(`{}`) + `]}}`,
		"variables":               `{"spec":{"containers":[{"env":[` + many(`{}`) + `]}]}}`,
		"variables from a secret": `{"spec":{"containers":[{"env":[` + many(`{"valueFrom":{"secretKeyRef":{}}}`) + `]}]}}`,
		"statuses":                `{"status":{"containerStatuses":[` + many(`{}`) + `]}}`,
		"owners":                  `{"metadata":{"ownerReferences":[` + many(`{}`) + `]}}`,
		"texts":                   `{"metadata":{"finalizers":[` + many(`""`) + `]}}`,
		"terms":                   `{"spec":{"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[` + many(term) + `]}}}}`,
		"a long text":             `{"metadata":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`,
	}
	for name, body := range bodies {
		t.Run(name, func(t *testing.T) {
			raw := []byte(`{"request":{"object":` + body + `}}`)
			// The middle of three: what earlier tests left behind may come or go meanwhile.
			took := []int64{occupied(t, raw), occupied(t, raw), occupied(t, raw)}
			slices.Sort(took)
			// What the test itself and the runtime take besides.
			const noise = 64 << 10
			if got := estimate(raw); got < took[1]-noise {
				t.Errorf("%d bytes occupy %d, estimate %d", len(raw), took[1], got)
			}
		})
	}
}

// occupied is how many bytes a body takes with all that is decoded of it.
func occupied(t *testing.T, body []byte) int64 {
	t.Helper()
	before := heap()
	raw := bytes.Clone(body)
	review := &admissionv1.AdmissionReview{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, review); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(review.Request.Object.Raw, pod); err != nil {
		t.Fatal(err)
	}
	took := heap() - before
	runtime.KeepAlive(raw)
	runtime.KeepAlive(review)
	runtime.KeepAlive(pod)
	return took
}

// heap is how many bytes live objects occupy.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
