package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

// noop decodes the pod and allows it: what any webhook for pods does at least.
type noop struct{}

func (noop) Handle(_ context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := kjson.UnmarshalCaseSensitivePreserveInts(req.Object.Raw, &pod); err != nil {
		panic(err)
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: req.UID, Allowed: true}}
}

// BenchmarkServeHTTP is a request from its bytes to those of the answer, without
// the network: ours on a cluster of 1,000 nodes, next to one that does nothing.
func BenchmarkServeHTTP(b *testing.B) {
	pod, err := os.ReadFile("testdata/trainer.json")
	if err != nil {
		b.Fatal(err)
	}
	var nodes []any
	for i := range 1000 {
		nodes = append(nodes, benchNode(fmt.Sprintf("node-%04d", i)))
	}
	bed := newBed(b, config.Default(), []string{"team-a"}, nodes...)
	quiet := NewHandler(bed.cfg, bed.decider, metrics.New(prometheus.NewRegistry()), logr.Discard())
	for name, handler := range map[string]admission.Handler{"noop": noop{}, "ours": quiet} {
		b.Run(name, func(b *testing.B) {
			reviews := server.New(handler, bed.requests, logr.Discard(), 4, time.Minute)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				// Each request has a UID of its own, as those of the API server. The clock
				// moves on, so that reservations end.
				i++
				bed.clock = bed.clock.Add(time.Second)
				body := reviewtest.ReplaceUID(reviewtest.Review(string(pod)), strconv.Itoa(i))
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, config.WebhookPath, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				reviews.ServeHTTP(w, r)
				if w.Code != http.StatusOK || strings.Contains(w.Body.String(), `"patch"`) != (name == "ours") {
					b.Fatalf("%d %.200s", w.Code, w.Body)
				}
			}
		})
	}
}

func benchNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1152Gi"),
				corev1.ResourcePods: resource.MustParse("110"), "nvidia.com/gpu": resource.MustParse("8"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}
