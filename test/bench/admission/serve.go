package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	scan "github.com/gpu-binpacker/gpu-binpacker/test/bench/naive"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

// naiveTimeout is longer than ours: looking at everything takes long, and the
// benchmark wants to know how long.
const naiveTimeout = time.Minute

// serve is the command serve: the product's own HTTPS server with another handler.
func serve(ctx context.Context, args []string) error {
	cfg := config.Default().Server
	set := flag.NewFlagSet("serve", flag.ExitOnError)
	name := set.String("system", noop, "noop or naive")
	shapeName := set.String("shape", "", "shape of the cluster that naive looks at")
	nodes := set.Int("nodes", 0, "its size")
	set.IntVar(&cfg.WebhookPort, "port", 0, "port")
	set.StringVar(&cfg.CertDir, "cert-dir", "", "folder with tls.crt and tls.key")
	if err := set.Parse(args); err != nil {
		return err
	}
	handler, timeout := admission.Handler(noopHandler{}), cfg.DecisionTimeout.Duration
	if *name == naive {
		shape := cluster.Find(*shapeName)
		if shape == nil {
			return fmt.Errorf("there is no shape %q", *shapeName)
		}
		handler, timeout = &naiveHandler{cluster: scan.New(shape, *nodes)}, naiveTimeout
	}
	reviews := server.New(handler, metrics.New(ctrlmetrics.Registry), logr.Discard(), cfg.MaxConcurrentRequests, timeout)
	return server.NewListener(cfg, reviews, logr.Discard()).Start(ctx)
}

// noopHandler decodes the pod and allows it: what any webhook for pods does at least.
type noopHandler struct{}

func (noopHandler) Handle(_ context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := kjson.Unmarshal(req.Object.Raw, &pod); err != nil {
		panic(err) // the benchmark sends one right pod
	}
	return allowed(req)
}

func allowed(req admission.Request) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{UID: req.UID, Allowed: true}}
}

// naiveHandler looks at all nodes and pods and writes down the best node.
type naiveHandler struct{ cluster *scan.Scan }

func (h *naiveHandler) Handle(_ context.Context, req admission.Request) admission.Response {
	var pod corev1.Pod
	if err := kjson.Unmarshal(req.Object.Raw, &pod); err != nil {
		panic(err) // the benchmark sends one right pod
	}
	response := allowed(req)
	target := h.cluster.Decide(&pod)
	if target == "" {
		return response
	}
	patch, err := json.Marshal([]operation{{Op: "add", Path: targetPath, Value: target}})
	if err != nil {
		panic(err) // three strings
	}
	jsonPatch := admissionv1.PatchTypeJSONPatch
	response.Patch, response.PatchType = patch, &jsonPatch
	return response
}
