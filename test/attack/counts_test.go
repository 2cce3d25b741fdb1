package attack

import (
	"context"
	"errors"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

const (
	durationMetric  = "apiserver_admission_webhook_admission_duration_seconds"
	rejectionMetric = "apiserver_admission_webhook_rejection_count"
	failOpenMetric  = "apiserver_admission_webhook_fail_open_count"
	decisionsMetric = "gpu_binpacker_decisions_total"
	busyMetric      = "gpu_binpacker_busy_requests_total"
	nameLabel       = "name"
	busy            = "busy"
)

// counts are what API server and replicas have counted since they started.
type counts struct {
	// calls of the webhook for the victims, slow those that took longer than the
	// decision timeout, by the API server's clock.
	calls, slow int
	// rejections of victims because of the webhook, and failed calls that were ignored.
	rejections, failOpens int
	// decisions of all pods by steering and reason, and requests that were turned away;
	// ranked are those without dry runs.
	decisions map[string]int
	ranked    int
}

// count reads them.
func (b *bed) count(ctx context.Context) (counts, error) {
	c := counts{decisions: map[string]int{}}
	metrics, err := b.Metrics(ctx, controlplane.APIServer)
	if err != nil {
		return c, err
	}
	victims := map[string]string{nameLabel: victimsWebhook}
	c.rejections, c.failOpens = int(metrics.Sum(rejectionMetric, victims)), int(metrics.Sum(failOpenMetric, victims))
	if err := c.addCalls(metrics[durationMetric]); err != nil {
		return c, err
	}
	for _, replica := range b.installed.Replicas() {
		metrics, err := replica.Metrics(ctx)
		if err != nil {
			return c, err
		}
		c.addDecisions(metrics)
	}
	return c, nil
}

// addCalls adds the calls for victims.
func (c *counts) addCalls(durations *dto.MetricFamily) error {
	for _, metric := range durations.GetMetric() {
		if labelsOf(metric)[nameLabel] != victimsWebhook {
			continue
		}
		histogram, within := metric.GetHistogram(), -1
		for _, bucket := range histogram.GetBucket() {
			if bucket.GetUpperBound() == decisionTimeout.Seconds() {
				within = int(bucket.GetCumulativeCount())
			}
		}
		if within < 0 {
			return errors.New("the API server's metric has no bucket that ends at the decision timeout")
		}
		c.calls += int(histogram.GetSampleCount())
		c.slow += int(histogram.GetSampleCount()) - within
	}
	return nil
}

// addDecisions adds those of a replica.
func (c *counts) addDecisions(metrics controlplane.Metrics) {
	for _, metric := range metrics[decisionsMetric].GetMetric() {
		labels, count := labelsOf(metric), int(metric.GetCounter().GetValue())
		c.decisions[strings.TrimSuffix(labels["steering"]+" "+labels["reason"], " ")] += count
		if labels["steering"] == config.SteeringRanked && labels["dry_run"] == "false" {
			c.ranked += count
		}
	}
	c.decisions[busy] += int(metrics.Sum(busyMetric, nil))
}

func labelsOf(metric *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range metric.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}
