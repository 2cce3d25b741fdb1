package check

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// calls are what the API server counts about our webhook since it started.
type calls struct {
	// all calls, failed ones included; failed ones, after which the pod was created
	// unchanged; pods refused because of an answer of ours.
	all, failed, refused int
}

// The API server's metrics about webhooks.
const (
	callsMetric    = "apiserver_admission_webhook_request_total"
	failedMetric   = "apiserver_admission_webhook_fail_open_count"
	rejectedMetric = "apiserver_admission_webhook_rejection_count"
)

// notAnswered is the error_type of pods refused because the webhook could not be
// called and its failurePolicy is Fail, which GB302 finds.
const notAnswered = "calling_webhook_error"

// recentPods is how many GPU pods, the newest ones, are looked at where the metrics
// do not help.
const recentPods = 10

// manyFailed is the share of failed calls, in percent, from which on it is worth a
// warning: the counts go back to the API server's start, and a few calls fail
// whenever replicas are all replaced.
const manyFailed = 10

func (c *cluster) calls(ctx context.Context) (calls, error) {
	return c.called.get(func() (calls, error) {
		text, err := c.Metrics(ctx)
		if err != nil {
			return calls{}, err
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
		if err != nil {
			return calls{}, fmt.Errorf("reading the API server's metrics: %w", err)
		}
		return calls{
			all:     sum(families[callsMetric]),
			failed:  sum(families[failedMetric]),
			refused: sum(families[rejectedMetric]),
		}, nil
	})
}

// sum adds up the counters about our webhook.
func sum(family *dto.MetricFamily) int {
	total := 0.0
	for _, metric := range family.GetMetric() {
		ours, counts := false, true
		for _, label := range metric.GetLabel() {
			switch label.GetName() {
			case "name":
				ours = label.GetValue() == config.WebhookName
			case "error_type":
				counts = label.GetValue() != notAnswered
			}
		}
		if ours && counts {
			total += metric.GetCounter().GetValue()
		}
	}
	return int(total)
}

// checkCalls is run before the pod on trial, whose call counts too.
func checkCalls(ctx context.Context, c *cluster) verdict {
	if _, _, err := c.webhook(ctx); err != nil {
		return needsWebhook(err)
	}
	fixes := []string{
		"kubectl -n " + c.systemNamespace(ctx) + " get pods,endpointslices",
		"# can the control plane reach the pods? see docs/operating.md#ports",
	}
	counts, metricsErr := c.calls(ctx)
	if counts.failed*100 >= counts.all*manyFailed && counts.failed > 0 {
		return warn("%d of %d calls failed since the API server started; these pods were created unchanged", counts.failed, counts.all).fix(fixes...)
	}
	if counts.all > 0 {
		return ok("%s, %d failed", terminal.Count(counts.all, "call"), counts.failed)
	}
	pods, err := c.recent(ctx)
	switch {
	case err != nil && metricsErr != nil:
		return skip("needs permission to get /metrics of the API server, or to list pods and namespaces")
	case err != nil:
		return unread("list pods and namespaces", err)
	case len(pods) == 0:
		return ok("not needed yet: no GPU pod was created in an opted-in namespace since")
	}
	steered := 0
	for _, pod := range pods {
		if pod.Annotations[config.AnnotationSteering] != "" {
			steered++
		}
	}
	found := fmt.Sprintf("%d of the newest %d GPU pods in opted-in namespaces were steered", steered, len(pods))
	switch {
	case steered == 0 && metricsErr == nil:
		return fail("never, since the API server started; %s", found).fix(fixes...)
	case steered == 0:
		return warn("%s", found).detail("Pods from before the namespace opted in are among them.").fix(fixes...)
	}
	return ok("%s", found)
}

// recent returns the newest GPU pods that the webhook should have been asked about.
func (c *cluster) recent(ctx context.Context) ([]*corev1.Pod, error) {
	hook, _, err := c.webhook(ctx)
	if err != nil {
		return nil, err
	}
	enabled, err := c.enabled(ctx)
	if err != nil {
		return nil, err
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return nil, err
	}
	cfg := c.assumed(ctx)
	var recent []*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if slices.Contains(enabled, pod.Namespace) && pod.CreationTimestamp.After(hook.CreationTimestamp.Time) && steerable(pod, cfg) {
			recent = append(recent, pod)
		}
	}
	slices.SortFunc(recent, func(a, b *corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return recent[:min(len(recent), recentPods)], nil
}

// steerable tells whether a pod is of a kind that is steered, or was.
func steerable(pod *corev1.Pod, cfg config.Configuration) bool {
	if pod.Annotations[config.AnnotationSteering] != "" {
		return true
	}
	_, reason := steering.EligibleWhenCreated(pod, &cfg)
	return asksForGPU(pod, cfg.Resources) && reason == steering.ReasonNone
}

func checkRejections(ctx context.Context, c *cluster) verdict {
	if _, _, err := c.webhook(ctx); err != nil {
		return needsWebhook(err)
	}
	counts, err := c.calls(ctx)
	if err != nil {
		return unread("get /metrics of the API server", err)
	}
	if counts.refused > 0 {
		return fail("%s refused since the API server started; this is a bug, please report it", terminal.Count(counts.refused, "pod")).
			fix("# until it is fixed:",
				"kubectl label namespaces -l "+config.LabelEnabled+"=true \\",
				"  "+config.LabelEnabled+"-")
	}
	return ok("none since the API server started")
}
