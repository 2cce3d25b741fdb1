package check

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// callCases are about whether the webhook is called.
func callCases() map[string]broken {
	metric := func(name, labels, value string) string {
		return typed(name, `{name="pods.gpu-binpacker.io"`+labels+`} `+value)
	}
	return map[string]broken{
		"never called": {"GB306", func(_ *testing.T, b *bed) {
			b.metrics, b.pods[0].Annotations = "", nil
		}, Failure, "never, since", "get pods,endpointslices"},
		"called before the API server's restart": {"GB306", func(_ *testing.T, b *bed) {
			b.metrics = ""
		}, OK, "1 of the newest 1 GPU pods", ""},
		"no pods yet": {"GB306", func(_ *testing.T, b *bed) {
			b.metrics, b.pods = "", nil
		}, OK, "not needed yet", ""},
		"pods of before": {"GB306", func(_ *testing.T, b *bed) {
			b.metrics, b.pods[0].Annotations = "", nil
			b.pods[0].CreationTimestamp = metav1.NewTime(installed.Add(-time.Hour))
		}, OK, "not needed yet", ""},
		"another's webhook": {"GB306", func(_ *testing.T, b *bed) {
			b.metrics, b.pods[0].Annotations = typed(callsMetric, `{name="x"} 5`), nil
		}, Failure, "never", ""},
		"calls fail": {"GB306", func(_ *testing.T, b *bed) {
			b.metrics += metric(failedMetric, "", "64")
		}, Warning, "64 of 640 calls failed", "docs/operating.md#ports"},
		"few calls failed": {"GB306", func(_ *testing.T, b *bed) {
			b.metrics += metric(failedMetric, "", "63")
		}, OK, "640 calls, 63 failed", ""},
		"no metrics, steered": {"GB306", func(_ *testing.T, b *bed) {
			b.metricsErr = forbidden()
		}, OK, "1 of the newest 1", ""},
		"no metrics, not steered": {"GB306", func(_ *testing.T, b *bed) {
			b.metricsErr, b.pods[0].Annotations = forbidden(), nil
		}, Warning, "0 of the newest 1", "endpointslices"},
		"pods refused": {"GB307", func(_ *testing.T, b *bed) {
			b.metrics += metric(rejectedMetric, `,error_type="apiserver_internal_error"`, "3")
		}, Failure, "3 pods refused", "kubectl label namespaces"},
		"refused for no answer": {"GB307", func(_ *testing.T, b *bed) {
			b.metrics += metric(rejectedMetric, `,error_type="calling_webhook_error"`, "3")
		}, OK, "none", ""},
	}
}

// trialCases are about the pod on trial.
func trialCases() map[string]broken {
	unchanged := func(*corev1.Pod) error { return nil }
	return map[string]broken{
		"not reached": {"GB308", func(_ *testing.T, b *bed) {
			b.trial = unchanged
		}, Failure, "came back unchanged from team-a", "logs -l app.kubernetes.io/name=gpu-binpacker"},
		"one node": {"GB308", func(_ *testing.T, b *bed) {
			b.trial, b.nodes = unchanged, b.nodes[:1]
		}, Failure, "came back unchanged", ""},
		"other scheduler": {"GB308", func(_ *testing.T, b *bed) {
			b.trial = func(p *corev1.Pod) error { p.Spec.SchedulerName = "volcano"; return nil }
		}, Warning, "the scheduler volcano", ""},
		"gated": {"GB308", func(_ *testing.T, b *bed) {
			b.trial = func(p *corev1.Pod) error {
				p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "x/gate"}}
				return nil
			}
		}, Warning, "gate x/gate", ""},
		"made to spread": {"GB308", func(_ *testing.T, b *bed) {
			b.trial = func(p *corev1.Pod) error {
				p.Spec.TopologySpreadConstraints = make([]corev1.TopologySpreadConstraint, 1)
				return nil
			}
		}, Warning, "wish to be spread", ""},
		"full and no late steering": {"GB308", func(_ *testing.T, b *bed) {
			b.trial, b.cfg.LateSteering.Mode = unchanged, config.LateOff
			for _, node := range b.nodes {
				node.Spec.Unschedulable = true
			}
		}, Warning, "NothingFits", ""},
		"full": {"GB308", func(_ *testing.T, b *bed) {
			b.trial = annotated(config.SteeringLate)
		}, OK, "no node has room", ""},
		"dry-run": {"GB308", func(_ *testing.T, b *bed) {
			b.trial = annotated(config.SteeringDryRun)
		}, OK, "in dry-run mode", ""},
		"refused by a quota": {"GB308", func(_ *testing.T, b *bed) {
			b.judge = func(*corev1.Pod) error { return errors.New("exceeded quota: gpus") }
		}, Warning, "does not take a pod", "--namespace"},
		"may not create": {"GB308", func(_ *testing.T, b *bed) {
			b.denied = map[string]bool{"create pods": true}
		}, Skipped, "create pods in team-a", ""},
		"nobody opted in": {"GB308", func(_ *testing.T, b *bed) { b.namespaces = nil }, Skipped, "GB401", ""},
		"chosen namespace": {"GB308", func(_ *testing.T, b *bed) {
			b.namespace("team-b", "true")
			b.options.Namespace = "team-b"
		}, OK, "in team-b", ""},
		"chosen one is out": {"GB308", func(_ *testing.T, b *bed) {
			b.options.Namespace = "team-c"
		}, Failure, "team-c has not opted in", "kubectl label namespace team-c"},
	}
}

// typed is a counter in the text form.
func typed(name, sample string) string {
	return "# TYPE " + name + " counter\n" + name + sample + "\n"
}

func annotated(steering string) func(*corev1.Pod) error {
	return func(pod *corev1.Pod) error {
		pod.Annotations = map[string]string{config.AnnotationSteering: steering}
		return nil
	}
}

func forbidden() error {
	return apierrors.NewForbidden(corev1.Resource(""), "/metrics", errors.New("no"))
}
