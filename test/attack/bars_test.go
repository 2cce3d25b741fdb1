package attack

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const (
	// decisionTimeout is server.decisionTimeout as shipped, and a bound of the buckets
	// of the API server's metric.
	decisionTimeout = 500 * time.Millisecond
	// leastMargin is what a creation may take besides the webhook's part, even on an
	// idle machine, where programs of the control plane share two cores.
	leastMargin = 500 * time.Millisecond
	// percentileMargin is by how much percentiles of one machine differ from run to
	// run.
	percentileMarginMillis = 50

	// steeredPercent of the victims must be steered.
	steeredPercent = 99
	// probeFailures is from how many failed probes in a row on the kubelet takes a
	// replica for broken: the default failureThreshold.
	probeFailures = 3
)

// judge says what is not as it must be.
func judge(r *result) (problems []string) {
	bar := func(broken bool, format string, args ...any) {
		if broken {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	bar(r.Requests < r.LeastRequests, "the attack made %d requests or connections, less than %d: it shows nothing; the last error: %s", r.Requests, r.LeastRequests, r.AttackError)
	bar(r.Victims == 0 || 2*r.Victims < r.Due, "%d victims were created of %d that were due", r.Victims, r.Due)
	bar(r.Denied > 0, "%d victims were denied: %s", r.Denied, r.Denial)
	bar(r.Unavailable > 0, "%d tries to create a victim failed; the last: %s", r.Unavailable, r.Denial)
	bar(100*r.Steered < steeredPercent*r.Victims, "%d of %d victims were steered; decisions of all pods: %v", r.Steered, r.Victims, r.Decisions)
	bar(r.RankedByMetrics < r.Steered, "the replicas count %d ranked pods, the API server has %d", r.RankedByMetrics, r.Steered)
	bar(r.Delayed > r.AllowedDelayed, "%d calls for victims took longer than the decision timeout, more than %d by the API server's own load", r.Delayed, r.AllowedDelayed)
	bar(r.SlowestMillis > r.LimitMillis, "the slowest creation of a victim took %.0f ms, more than %.0f", r.SlowestMillis, r.LimitMillis)
	bar(r.ComparedMillis > 0 && r.P99Millis > 2*r.ComparedMillis+percentileMarginMillis,
		"the 99th percentile of creations is %.0f ms, more than twice the %.0f ms of the row it is compared with", r.P99Millis, r.ComparedMillis)
	bar(r.PeakMiB >= r.MemoryLimitMiB, "a replica took %.0f MiB of memory, its limit is %.0f", r.PeakMiB, r.MemoryLimitMiB)
	bar(r.KeptMiB > r.KeptLimitMiB, "a replica keeps %.0f MiB more than before, more than %.0f", r.KeptMiB, r.KeptLimitMiB)
	bar(r.Ended > 0, "%d replicas have ended", r.Ended)
	bar(r.FailedProbes >= probeFailures, "%d of a replica's probes failed in a row", r.FailedProbes)
	bar(!r.Recovered, "not everything is normal %s after the attack: %s", recoveryTime, r.NotNormal)
	return problems
}

// Each bar is passed by a good row and failed by a bad one, the nearest that there is.
func TestBars(t *testing.T) {
	good := func() *result {
		return &result{
			Requests: 100, LeastRequests: 100, Due: 300, Victims: 300, Steered: 297, RankedByMetrics: 297,
			Delayed: 4, AllowedDelayed: 4, SlowestMillis: 1000, LimitMillis: 1000, P99Millis: 150, ComparedMillis: 50,
			PeakMiB: 511, MemoryLimitMiB: 512, KeptMiB: 64, KeptLimitMiB: 64, FailedProbes: probeFailures - 1, Recovered: true,
		}
	}
	if problems := judge(good()); len(problems) > 0 {
		t.Errorf("problems of a good row: %v", problems)
	}
	for want, spoil := range map[string]func(*result){
		"it shows nothing":         func(r *result) { r.Requests-- },
		"that were due":            func(r *result) { r.Due = 601 },
		"0 victims":                func(r *result) { r.Victims, r.Steered, r.Due = 0, 0, 0 },
		"were denied":              func(r *result) { r.Denied = 1 },
		"to create a victim":       func(r *result) { r.Unavailable = 1 },
		"victims were steered":     func(r *result) { r.Steered-- },
		"the replicas count":       func(r *result) { r.RankedByMetrics-- },
		"decision timeout":         func(r *result) { r.Delayed++ },
		"slowest creation":         func(r *result) { r.SlowestMillis++ },
		"99th percentile":          func(r *result) { r.P99Millis++ },
		"MiB of memory":            func(r *result) { r.PeakMiB++ },
		"more than before":         func(r *result) { r.KeptMiB++ },
		"have ended":               func(r *result) { r.Ended = 1 },
		"probes failed":            func(r *result) { r.FailedProbes++ },
		"not everything is normal": func(r *result) { r.Recovered = false },
	} {
		row := good()
		spoil(row)
		if problems := judge(row); len(problems) != 1 || !strings.Contains(problems[0], want) {
			t.Errorf("problems %q, want one with %q", problems, want)
		}
	}
}
