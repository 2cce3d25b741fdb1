package controlplane

import (
	"bytes"
	"context"
	"fmt"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are the metric families of one scrape, name -> family.
type Metrics map[string]*dto.MetricFamily

// ParseMetrics reads the Prometheus text format.
func ParseMetrics(text []byte) (Metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("parsing metrics: %w", err)
	}
	return families, nil
}

// Sum adds up the counters and gauges of a family, or the observations of a
// histogram, whose labels include the given ones. A missing family counts 0, as
// a counter that was never incremented is not exported.
func (m Metrics) Sum(name string, labels map[string]string) float64 {
	family := m[name]
	if family == nil {
		return 0
	}
	sum := 0.0
	for _, metric := range family.Metric {
		if !hasLabels(metric, labels) {
			continue
		}
		sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() +
			float64(metric.GetHistogram().GetSampleCount())
	}
	return sum
}

// Labels returns the labels of each series of a family, name -> value.
func (m Metrics) Labels(name string) []map[string]string {
	var all []map[string]string
	for _, metric := range m[name].GetMetric() {
		labels := map[string]string{}
		for _, pair := range metric.Label {
			labels[pair.GetName()] = pair.GetValue()
		}
		all = append(all, labels)
	}
	return all
}

// hasLabels reports whether a metric has all the labels.
func hasLabels(metric *dto.Metric, labels map[string]string) bool {
	found := 0
	for _, pair := range metric.Label {
		if value, wanted := labels[pair.GetName()]; wanted && value == pair.GetValue() {
			found++
		}
	}
	return found == len(labels)
}

// Metrics scrapes the API server, kube-controller-manager or a scheduler.
func (cp *ControlPlane) Metrics(ctx context.Context, component string) (Metrics, error) {
	address, ok := cp.addresses[component]
	if !ok {
		return nil, fmt.Errorf("scraping %s: it serves no metrics", component)
	}
	text, err := Read(ctx, cp.httpClient, address+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("scraping %s: %w", component, err)
	}
	return ParseMetrics(text)
}

// Rejections returns how many requests the API server has refused since it
// started because of a webhook, whether the webhook said no, answered with a
// patch that does not apply, or could not be called and its failure policy is
// Fail. webhook is the name of one webhook, such as pods.example.io, or empty
// for all.
func (cp *ControlPlane) Rejections(ctx context.Context, webhook string) (int, error) {
	return cp.webhookCount(ctx, "apiserver_admission_webhook_rejection_count", webhook)
}

// FailOpens returns how many requests the API server has let pass since it
// started because a webhook could not be called and its failure policy is
// Ignore. webhook is as in Rejections.
func (cp *ControlPlane) FailOpens(ctx context.Context, webhook string) (int, error) {
	return cp.webhookCount(ctx, "apiserver_admission_webhook_fail_open_count", webhook)
}

// webhookCount sums a counter of the API server over a webhook or all.
func (cp *ControlPlane) webhookCount(ctx context.Context, name, webhook string) (int, error) {
	metrics, err := cp.Metrics(ctx, APIServer)
	if err != nil {
		return 0, err
	}
	labels := map[string]string{}
	if webhook != "" {
		labels["name"] = webhook
	}
	return int(metrics.Sum(name, labels)), nil
}
