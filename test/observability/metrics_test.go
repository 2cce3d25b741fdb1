package observability

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

// root is the repository's root, seen from this package.
var root = filepath.Join("..", "..")

// metric is a metric that may be queried.
type metric struct {
	help string
	kind dto.MetricType
	// labels are the names of its labels, without those of the scrape.
	labels map[string]bool
}

// ours are the metrics that the binary registers, in the way it does.
func ours(t *testing.T) map[string]metric {
	t.Helper()
	cfg := config.Default()
	ix, err := index.New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	requests := metrics.New(registry)
	metrics.RegisterIndex(registry, ix)
	metrics.NewCallCheck(registry, requests, ix, logr.Discard())
	scorer := scoring.NewScorer(cfg, ix)
	metrics.RegisterSchedulerVersion(registry, scorer.Version())
	handler := webhook.NewHandler(cfg, scorer, requests, logr.Discard())
	reviews := server.New(handler, requests, logr.Discard(), cfg.Server.MaxConcurrentRequests, cfg.Server.DecisionTimeout.Duration)
	metrics.RegisterCertificate(registry, server.NewListener(cfg.Server, reviews, logr.Discard()).CertificateExpiry)

	// Metrics with labels show only once there is something to count.
	ix.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}},
	})
	ix.SetSynced()
	handler.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{}})

	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]metric{}
	for _, family := range families {
		m := metric{help: family.GetHelp(), kind: family.GetType(), labels: map[string]bool{}}
		for _, sample := range family.GetMetric() {
			for _, label := range sample.GetLabel() {
				m.labels[label.GetName()] = true
			}
		}
		all[family.GetName()] = m
	}
	if len(all) < 20 {
		t.Fatalf("found %d metrics of ours: %v", len(all), slices.Sorted(maps.Keys(all)))
	}
	return all
}

// others are the metrics of other programs that alerts and dashboard use, with the
// labels that these use.
var others = map[string]metric{
	// The API server: k8s.io/apiserver, pkg/admission/metrics.
	"apiserver_admission_webhook_fail_open_count":            {kind: dto.MetricType_COUNTER, labels: set("name", "type")},
	"apiserver_admission_webhook_rejection_count":            {kind: dto.MetricType_COUNTER, labels: set("name", "type", "operation", "error_type", "rejection_code")},
	"apiserver_admission_webhook_request_total":              {kind: dto.MetricType_COUNTER, labels: set("name", "type", "operation", "code", "rejected")},
	"apiserver_admission_webhook_admission_duration_seconds": {kind: dto.MetricType_HISTOGRAM, labels: set("name", "type", "operation", "rejected")},
	// kube-state-metrics.
	"kube_deployment_spec_replicas":             {kind: dto.MetricType_GAUGE, labels: set("namespace", "deployment")},
	"kube_deployment_status_replicas_available": {kind: dto.MetricType_GAUGE, labels: set("namespace", "deployment")},
	// cert-manager.
	"certmanager_certificate_expiration_timestamp_seconds": {kind: dto.MetricType_GAUGE, labels: set("name", "namespace")},
}

// known are all metrics that may be queried, by the name of their series: a
// histogram has three.
func known(t *testing.T) map[string]metric {
	t.Helper()
	series := map[string]metric{}
	for name, m := range merged(ours(t), others) {
		if m.kind != dto.MetricType_HISTOGRAM {
			series[name] = m
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			labels := maps.Clone(m.labels)
			if suffix == "_bucket" {
				labels["le"] = true
			}
			series[name+suffix] = metric{kind: dto.MetricType_COUNTER, labels: labels}
		}
	}
	return series
}

func merged(a, b map[string]metric) map[string]metric {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func set(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

func TestMetricsHaveHelp(t *testing.T) {
	for name, m := range ours(t) {
		if len(m.help) < 15 || !strings.HasSuffix(m.help, ".") {
			t.Errorf("%s: HELP %q does not say what it is", name, m.help)
		}
	}
}

var documentedMetric = regexp.MustCompile("`(gpu_binpacker_[a-z_]+)(?:\\{([a-z_,]+)\\})?`")

// The table in docs/operating.md lists every metric, with its labels, and no other.
func TestMetricsAreDocumented(t *testing.T) {
	documented := map[string]string{}
	for line := range strings.Lines(read(t, "docs/operating.md")) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, match := range documentedMetric.FindAllStringSubmatch(cells[1], -1) {
			documented[match[1]] = sortedLabels(strings.Split(match[2], ","))
		}
	}
	all := ours(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		labels, ok := documented[name]
		if !ok {
			t.Errorf("docs/operating.md does not list %s", name)
		} else if want := sortedLabels(slices.Collect(maps.Keys(all[name].labels))); labels != want {
			t.Errorf("docs/operating.md lists %s with labels %q, it has %q", name, labels, want)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if _, ok := all[name]; !ok {
			t.Errorf("docs/operating.md lists %s, which does not exist", name)
		}
	}
}

func sortedLabels(labels []string) string {
	labels = slices.Clone(labels)
	slices.Sort(labels)
	return strings.Join(labels, ",")
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(fmt.Errorf("reading a file of the repository: %w", err))
	}
	return string(content)
}
