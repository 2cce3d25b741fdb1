package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
)

const (
	// KwokNodeAnnotation puts a node into kwok's care when its value is
	// "fake". Nodes made by Node have it.
	KwokNodeAnnotation = "kwok.x-k8s.io/node"

	// RunsForAnnotation on a pod makes kwok end it with success after the
	// given time, for instance "1500ms". Pods without it run until deleted.
	RunsForAnnotation = "test.gpu-binpacker.io/runs-for"

	// FailsAfterAnnotation is the same with failure.
	FailsAfterAnnotation = "test.gpu-binpacker.io/fails-after"

	// RefusedAnnotation makes kwok refuse the pod as a kubelet does that cannot take
	// it: the pod fails and never runs. The value is the reason in its status, for
	// instance UnexpectedAdmissionError.
	RefusedAnnotation = "test.gpu-binpacker.io/refused"
)

// kwokConfig says what kwok does with nodes and pods.
//
//go:embed kwok.yaml
var kwokConfig []byte

// kwok describes kwok.
func (cp *ControlPlane) kwok() (*Component, error) {
	port, err := cp.ports.reserve()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := cp.kubeconfigFor("kwok", administratorGroup)
	if err != nil {
		return nil, err
	}
	config := cp.path("kwok.yaml")
	if err := os.WriteFile(config, kwokConfig, privateFileMode); err != nil {
		return nil, fmt.Errorf("configuring kwok: %w", err)
	}
	address := loopback(port)
	ready := func(ctx context.Context) error { return get(ctx, http.DefaultClient, "http://"+address+"/healthz") }
	return cp.component(Kwok, cp.options.Binaries.Kwok, ready,
		"--kubeconfig="+kubeconfig,
		"--config="+config,
		"--manage-nodes-with-annotation-selector="+KwokNodeAnnotation+"=fake",
		"--server-address="+address,
		"-v="+kwokLogLevel(cp.options.Verbosity[Kwok]),
	), nil
}

// kwokLogLevel translates klog's levels: kwok knows names only.
func kwokLogLevel(verbosity int) string {
	if verbosity > 0 {
		return "DEBUG"
	}
	return "INFO"
}
