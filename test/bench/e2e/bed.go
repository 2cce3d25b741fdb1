package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/procfs"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/product"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// The systems, in the order in which they take turns.
const (
	none = "none"
	noop = "noop"
	ours = "ours"
)

var systems = []string{none, noop, ours}

const (
	gpusPerNode = 8
	gpu         = scenario.GPU
	// noopLabel opts a namespace in to the webhook that does nothing.
	noopLabel = "bench.gpu-binpacker.io/noop"
)

// cpu returns the CPU time that the scheduler, the API server and gpu-binpacker have
// used so far.
func (b *bed) cpu() (used [3]time.Duration, err error) {
	pids := [3]int{b.Component(controlplane.KubeScheduler).PID(), b.Component(controlplane.APIServer).PID(), b.installed.Replicas()[0].PID()}
	for i, pid := range pids {
		if used[i], err = procfs.CPU(pid); err != nil {
			return used, err
		}
	}
	return used, nil
}

// labels of a namespace of a system.
var labels = map[string]map[string]string{
	none: nil,
	noop: {noopLabel: "true"},
	ours: {config.LabelEnabled: "true"},
}

// bed is the control plane with both webhooks.
type bed struct {
	*controlplane.ControlPlane
	clients   kubernetes.Interface
	installed *installation.Installation
	noop      *controlplane.Component
}

// start starts everything and creates the nodes.
func start(ctx context.Context, o options) (b *bed, err error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{CertManager: true, Log: os.Stderr})
	if err != nil {
		return nil, err
	}
	b = &bed{ControlPlane: cp}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.stop())
		}
	}()
	c := cp.RESTConfig()
	c.ContentType, c.QPS, c.Timeout = runtime.ContentTypeProtobuf, -1, 0 // a watch may take long
	if b.clients, err = kubernetes.NewForConfig(c); err != nil {
		return nil, err
	}
	webhook := installation.Options{Replicas: 1, Log: os.Stderr}
	if o.configuration != "" {
		if webhook.Configuration, err = os.ReadFile(o.configuration); err != nil {
			return nil, err
		}
	}
	if b.installed, err = installation.Install(ctx, cp, webhook); err != nil {
		return nil, err
	}
	if err := b.startNoop(ctx); err != nil {
		return nil, err
	}
	nodes := make([]*corev1.Node, o.nodes)
	for i := range nodes {
		nodes[i] = controlplane.Node(fmt.Sprintf("gpu-%04d", i), map[string]string{
			"cpu": "96", "memory": "1152Gi", string(gpu): strconv.Itoa(gpusPerNode),
		}, controlplane.WithoutKwok())
	}
	if err := cp.CreateNodes(ctx, nodes...); err != nil {
		return nil, err
	}
	return b, b.waitIndex(ctx)
}

func (b *bed) waitIndex(ctx context.Context) error {
	return (&scenario.Cluster{ControlPlane: b.ControlPlane, Installed: b.installed}).WaitIndex(ctx)
}

// startNoop starts the webhook of the admission benchmark that does nothing, and
// makes the API server call it in the same way as ours.
func (b *bed) startNoop(ctx context.Context) error {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return err
	}
	program := programs.Program{
		Name: "noop webhook", Package: "./bench/admission", Dir: filepath.Join(root, "test"),
		Output: filepath.Join(b.Dir(), "noop-webhook"),
	}
	if err := program.Build(ctx, os.Stderr); err != nil {
		return err
	}
	dir := filepath.Join(b.Dir(), noop)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if err := product.WriteCertificate(dir); err != nil {
		return err
	}
	port, err := b.ReservePort()
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	b.noop = controlplane.NewComponent(controlplane.ComponentOptions{
		Name: noop, Path: program.Output, Dir: dir,
		Args: []string{"serve", "-system", noop, "-port", strconv.Itoa(port), "-cert-dir", dir},
		Ready: func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	})
	if err := b.noop.Start(ctx); err != nil {
		return err
	}
	return b.register(ctx, "https://"+address+config.WebhookPath, filepath.Join(dir, "tls.crt"))
}

// register makes a copy of our webhook's configuration for the other webhook.
func (b *bed) register(ctx context.Context, url, caFile string) error {
	hooks := b.clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
	installed, err := hooks.Get(ctx, config.WebhookConfigurationName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(caFile)
	if err != nil {
		return err
	}
	hook := installed.Webhooks[0]
	hook.Name = "pods.noop.bench.gpu-binpacker.io"
	hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: ca}
	hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: labels[noop]}
	_, err = hooks.Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "noop"}, Webhooks: []admissionregistrationv1.MutatingWebhook{hook},
	}, metav1.CreateOptions{})
	return err
}

// stop ends everything.
func (b *bed) stop() (err error) {
	if b.noop != nil {
		err = b.noop.Kill()
	}
	if b.installed != nil {
		err = errors.Join(err, b.installed.Stop())
	}
	return errors.Join(err, b.Stop())
}
