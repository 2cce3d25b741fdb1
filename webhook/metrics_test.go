package webhook

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/watch"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
)

func TestMetrics(t *testing.T) {
	bed := handlerWith(t, deciderFunc(func(r scoring.Request) scoring.Decision {
		switch r.Pod.Name {
		case "late":
			return scoring.Decision{Reason: steering.ReasonNothingFits, Late: &steering.Late{LabelValue: "x"}}
		case "full":
			return scoring.Decision{Reason: steering.ReasonNothingFits}
		default:
			return ranked("g1")
		}
	}))
	dryRun := true
	for _, name := range []string{"p", "p", "late", "full"} {
		bed.Handle(t.Context(), podCreate([]byte(strings.Replace(gpuPod, `"p"`, `"`+name+`"`, 1))))
	}
	request := podCreate([]byte(gpuPod))
	request.DryRun = &dryRun
	bed.Handle(t.Context(), request)
	err := testutil.GatherAndCompare(bed.registry, strings.NewReader(`
# HELP gpu_binpacker_decisions_total Admission requests answered, by steering (ranked, late, none), reason for none, and whether it was a dry run.
# TYPE gpu_binpacker_decisions_total counter
gpu_binpacker_decisions_total{dry_run="false",reason="",steering="ranked"} 2
gpu_binpacker_decisions_total{dry_run="false",reason="NothingFits",steering="late"} 1
gpu_binpacker_decisions_total{dry_run="false",reason="NothingFits",steering="none"} 1
gpu_binpacker_decisions_total{dry_run="false",reason="Panic",steering="none"} 0
gpu_binpacker_decisions_total{dry_run="false",reason="PatchRejected",steering="none"} 0
gpu_binpacker_decisions_total{dry_run="false",reason="Timeout",steering="none"} 0
gpu_binpacker_decisions_total{dry_run="true",reason="",steering="ranked"} 1
`), "gpu_binpacker_decisions_total")
	if err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(bed.registry, "gpu_binpacker_decision_duration_seconds"); n != 1 || err != nil {
		t.Errorf("%d duration histograms, %v", n, err)
	}
	problems, err := testutil.GatherAndLint(bed.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("metrics lint: %v %v", problems, err)
	}
}

// The index's metrics show its present state, and where steered pods went.
func TestRegisterIndex(t *testing.T) {
	bed := newBed(t, config.Default(), []string{"team-a"}, goldenCluster(t, "mixed")...)
	metrics.RegisterIndex(bed.registry, bed.ix)
	check := func(want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, indexMetrics(t, bed.registry)); diff != "" {
			t.Errorf("metrics (-want +got):\n%s", diff)
		}
	}
	const where = "gpu_binpacker_landed_pods_total/"
	want := map[string]float64{
		"gpu_binpacker_index_nodes": 3, "gpu_binpacker_index_pods": 2, "gpu_binpacker_index_reservations": 0,
		"gpu_binpacker_index_synced": 1, "gpu_binpacker_index_last_event_timestamp_seconds": 0, "gpu_binpacker_index_negative_usage_total": 0, "gpu_binpacker_waiting_pods": 0,
		"gpu_binpacker_scanned_decisions_total": 0, "gpu_binpacker_reservations_unseen_total": 0, "gpu_binpacker_clock_ahead_seconds": 0,
		"gpu_binpacker_backoff_nodes/everybody": 0, "gpu_binpacker_backoff_nodes/namespace": 0,
		where + "target": 0, where + "listed": 0, where + "other": 0, where + "late": 0,
	}
	check(want)

	request := podCreate([]byte(gpuPod))
	response := bed.Handle(t.Context(), request)
	want["gpu_binpacker_index_reservations"] = 1
	check(want)

	pod := &corev1.Pod{}
	if err := json.Unmarshal(apply(t, request.Object.Raw, response.Patch), pod); err != nil {
		t.Fatal(err)
	}
	pod.UID, pod.Namespace, pod.CreationTimestamp = "p", "team-a", metav1.Time{Time: testStart}
	bed.ix.SetPod(pod.DeepCopy())
	want["gpu_binpacker_index_reservations"], want["gpu_binpacker_index_pods"], want["gpu_binpacker_waiting_pods"] = 0, 3, 1
	check(want)

	pod.Spec.NodeName = pod.Annotations[config.AnnotationTarget]
	if err := watch.Pods(bed.ix).Update(pod); err != nil {
		t.Fatal(err)
	}
	want["gpu_binpacker_waiting_pods"], want[where+"target"] = 0, 1
	want["gpu_binpacker_index_last_event_timestamp_seconds"] = float64(bed.clock.Unix())
	check(want)

	// A pod that never comes, and pods that their node refuses.
	bed.clock = bed.clock.Add(time.Second)
	again := podCreate([]byte(gpuPod))
	again.UID = "again"
	bed.Handle(t.Context(), again)
	bed.clock = bed.clock.Add(config.Default().InFlight.ReservationTTL.Duration)
	for i := range 3 {
		failed := pod.DeepCopy()
		failed.UID, failed.Spec.NodeName, failed.CreationTimestamp = types.UID(fmt.Sprint("failed", i)), "", metav1.NewTime(bed.clock)
		failed.Spec.Containers[0].Resources.Requests = failed.Spec.Containers[0].Resources.Limits // by the API server
		bed.ix.SetPod(failed.DeepCopy())
		failed.Spec.NodeName, failed.Status.Phase, failed.Status.Reason = pod.Spec.NodeName, corev1.PodFailed, "UnexpectedAdmissionError"
		bed.ix.SetPod(failed)
	}
	want["gpu_binpacker_reservations_unseen_total"], want["gpu_binpacker_backoff_nodes/namespace"] = 1, 1
	want[where+"target"] += 3
	check(want)

	for i := range pool.MaxPools { // each of a kind of its own; there is a pool of the pod before
		raw := strings.Replace(gpuPod, `"spec":{`, fmt.Sprintf(`"spec":{"tolerations":[{"key":"t%d"}],`, i), 1)
		bed.Handle(t.Context(), podCreate([]byte(raw)))
	}
	if got := indexMetrics(t, bed.registry)["gpu_binpacker_scanned_decisions_total"]; got != 1 {
		t.Errorf("%v scans for one kind more than there are pools", got)
	}

	empty, err := index.New(config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	metrics.RegisterIndex(registry, empty)
	if synced := indexMetrics(t, registry)["gpu_binpacker_index_synced"]; synced != 0 {
		t.Errorf("an index that is not synced shows %v", synced)
	}
}

// indexMetrics returns all metrics without those of the handler: name, and the
// label value if there is one -> value.
func indexMetrics(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		name := family.GetName()
		if !strings.HasPrefix(name, "gpu_binpacker_index_") && !strings.HasSuffix(name, "_pods") && !strings.HasSuffix(name, "_pods_total") &&
			!slices.Contains([]string{"gpu_binpacker_scanned_decisions_total", "gpu_binpacker_reservations_unseen_total", "gpu_binpacker_clock_ahead_seconds", "gpu_binpacker_backoff_nodes"}, name) {
			continue
		}
		for _, metric := range family.GetMetric() {
			key := name
			for _, label := range metric.GetLabel() {
				key += "/" + label.GetValue()
			}
			values[key] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return values
}
