package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// The metrics that a Handler makes count, and those of an index, are tested in package webhook.
func TestRequests(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := New(registry)
	before := time.Now()
	m.Observe("ranked", steering.ReasonNone, false, 3*time.Millisecond)
	m.Observe("ranked", steering.ReasonNone, true, 20*time.Microsecond)
	m.Observe("none", steering.ReasonTimeout, false, 2*time.Second)
	m.CountInvalid()
	for range 2 {
		m.CountBusy()
	}
	if at := time.Unix(0, m.lastRequest.Load()); at.Before(before.Round(0)) || time.Since(at) < 0 {
		t.Errorf("the last request was at %v, the first one after %v", at, before)
	}
	// The durations are in the buckets of up to 5 ms and 50 µs, and above the last one.
	err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP gpu_binpacker_busy_requests_total HTTP requests turned away with status 503 because too many were under way.
# TYPE gpu_binpacker_busy_requests_total counter
gpu_binpacker_busy_requests_total 2
# HELP gpu_binpacker_decision_duration_seconds Time from a decoded admission request to its response.
# TYPE gpu_binpacker_decision_duration_seconds histogram
gpu_binpacker_decision_duration_seconds_bucket{le="5e-05"} 1
gpu_binpacker_decision_duration_seconds_bucket{le="0.0001"} 1
gpu_binpacker_decision_duration_seconds_bucket{le="0.00025"} 1
gpu_binpacker_decision_duration_seconds_bucket{le="0.0005"} 1
gpu_binpacker_decision_duration_seconds_bucket{le="0.001"} 1
gpu_binpacker_decision_duration_seconds_bucket{le="0.0025"} 1
gpu_binpacker_decision_duration_seconds_bucket{le="0.005"} 2
gpu_binpacker_decision_duration_seconds_bucket{le="0.01"} 2
gpu_binpacker_decision_duration_seconds_bucket{le="0.025"} 2
gpu_binpacker_decision_duration_seconds_bucket{le="0.05"} 2
gpu_binpacker_decision_duration_seconds_bucket{le="0.1"} 2
gpu_binpacker_decision_duration_seconds_bucket{le="0.25"} 2
gpu_binpacker_decision_duration_seconds_bucket{le="0.5"} 2
gpu_binpacker_decision_duration_seconds_bucket{le="1"} 2
gpu_binpacker_decision_duration_seconds_bucket{le="+Inf"} 3
gpu_binpacker_decision_duration_seconds_sum 2.00302
gpu_binpacker_decision_duration_seconds_count 3
# HELP gpu_binpacker_decisions_total Admission requests answered, by steering (ranked, late, none), reason for none, and whether it was a dry run.
# TYPE gpu_binpacker_decisions_total counter
gpu_binpacker_decisions_total{dry_run="false",reason="",steering="ranked"} 1
gpu_binpacker_decisions_total{dry_run="false",reason="Panic",steering="none"} 0
gpu_binpacker_decisions_total{dry_run="false",reason="PatchRejected",steering="none"} 0
gpu_binpacker_decisions_total{dry_run="false",reason="Timeout",steering="none"} 1
gpu_binpacker_decisions_total{dry_run="true",reason="",steering="ranked"} 1
# HELP gpu_binpacker_invalid_requests_total HTTP requests that were no valid AdmissionReview and got a non-2xx status.
# TYPE gpu_binpacker_invalid_requests_total counter
gpu_binpacker_invalid_requests_total 1
`), "gpu_binpacker_busy_requests_total", "gpu_binpacker_decision_duration_seconds", "gpu_binpacker_decisions_total", "gpu_binpacker_invalid_requests_total")
	if err != nil {
		t.Error(err)
	}
}

func TestRegisterCertificate(t *testing.T) {
	registry, expiry := prometheus.NewRegistry(), time.Time{}
	RegisterCertificate(registry, func() time.Time { return expiry })
	for at, want := range map[time.Time]string{{}: "0", time.Unix(1_700_000_000, 5): "1.7e+09"} {
		expiry = at
		if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP gpu_binpacker_certificate_expiry_timestamp_seconds When the certificate that is served now expires, Unix time; 0 while there is none.
# TYPE gpu_binpacker_certificate_expiry_timestamp_seconds gauge
gpu_binpacker_certificate_expiry_timestamp_seconds `+want+"\n")); err != nil {
			t.Error(err)
		}
	}
}
