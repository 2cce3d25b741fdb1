package report

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// prepareTimeout is far beyond what a pod takes: the handler's timeout is there for
// admission, and a busy machine must not change a report.
const prepareTimeout = time.Minute

// prepare returns what tells which pods the webhook leaves alone, and how the
// others look without its parts: it asks the webhook's own handler, which calls a
// decider only for pods that are to be ranked.
func prepare(cfg config.Configuration) func(*corev1.Pod) (*corev1.Pod, scoring.Reason) {
	cfg.Server.DecisionTimeout = metav1.Duration{Duration: prepareTimeout}
	asked, said := &recorder{}, &reasonSink{}
	handler := webhook.NewHandler(cfg, asked, webhook.NewMetrics(prometheus.NewRegistry()), logr.New(said))
	return func(pod *corev1.Pod) (*corev1.Pod, scoring.Reason) {
		created := *pod
		created.Spec.NodeName, created.Status = "", corev1.PodStatus{}
		raw, err := json.Marshal(&created)
		if err != nil {
			return nil, webhook.ReasonUndecodable
		}
		asked.pod, said.reason = nil, webhook.ReasonPanic // a panic logs no reason
		handler.Handle(context.Background(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			UID: pod.UID, Operation: admissionv1.Create, Namespace: pod.Namespace, Name: pod.Name,
			Kind:     metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Object:   runtime.RawExtension{Raw: raw},
		}})
		if asked.pod == nil {
			return nil, said.reason
		}
		return asked.pod, scoring.ReasonNone
	}
}

// recorder is a decider that keeps the pod and decides nothing.
type recorder struct{ pod *corev1.Pod }

func (r *recorder) Decide(_ context.Context, request scoring.Request) scoring.Decision {
	r.pod = request.Pod
	return scoring.Decision{Reason: scoring.ReasonNotSynced}
}

// reasonSink keeps the reason that the handler logs with each decision.
type reasonSink struct{ reason scoring.Reason }

func (*reasonSink) Init(logr.RuntimeInfo)            {}
func (*reasonSink) Enabled(int) bool                 { return true }
func (*reasonSink) Error(error, string, ...any)      {}
func (s *reasonSink) WithValues(...any) logr.LogSink { return s }
func (s *reasonSink) WithName(string) logr.LogSink   { return s }
func (s *reasonSink) Info(_ int, _ string, pairs ...any) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if reason, ok := pairs[i+1].(scoring.Reason); ok && pairs[i] == "reason" {
			s.reason = reason
		}
	}
}
