// Package product runs the real gpu-binpacker binary for the benchmarks of speed, as
// its Deployment does, but with metrics over plain HTTP, so that no API server has to
// authenticate their readers.
package product

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// environment is that of the Deployment (config/manager/deployment.yaml).
var environment = []string{"GOMEMLIMIT=460MiB", "GOGC=150"}

// Product is one process of the binary.
type Product struct {
	*controlplane.Component
	// Port serves the webhook, HealthPort probes and MetricsPort metrics.
	Port, HealthPort, MetricsPort int

	metricsURL string
}

// Build builds bin/gpu-binpacker and returns its path. A path that is given is
// returned as it is.
func Build(ctx context.Context, out io.Writer, given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	root, err := programs.RepositoryRoot()
	if err != nil {
		return "", err
	}
	program := programs.Program{
		Name: "gpu-binpacker", Package: "github.com/gpu-binpacker/gpu-binpacker", Dir: root,
		Output: filepath.Join(root, "bin", "gpu-binpacker"),
	}
	return program.Output, program.Build(ctx, out)
}

// New describes a process that has its certificate and its log in dir and watches the
// API server of the kubeconfig. Start returns when it is ready.
func New(binary, dir, kubeconfig string) (*Product, error) {
	if err := WriteCertificate(dir); err != nil {
		return nil, err
	}
	ports, err := freePorts(3)
	if err != nil {
		return nil, fmt.Errorf("finding ports for gpu-binpacker: %w", err)
	}
	p := &Product{Port: ports[0], MetricsPort: ports[1], HealthPort: ports[2], metricsURL: fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[1])}
	readyURL := fmt.Sprintf("http://127.0.0.1:%d/readyz", ports[2])
	p.Component = controlplane.NewComponent(controlplane.ComponentOptions{
		Name: "gpu-binpacker", Path: binary, Dir: dir,
		Environment: environment,
		Args: []string{
			"serve",
			"--kubeconfig=" + kubeconfig,
			"--webhook-cert-dir=" + dir,
			fmt.Sprintf("--webhook-port=%d", p.Port),
			fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", ports[1]),
			"--metrics-insecure",
			fmt.Sprintf("--health-probe-bind-address=127.0.0.1:%d", ports[2]),
		},
		Ready: func(ctx context.Context) error {
			_, err := controlplane.Read(ctx, http.DefaultClient, readyURL)
			return err
		},
	})
	return p, nil
}

// CheckIndex returns an error unless the index has that many nodes and pods.
func (p *Product) CheckIndex(ctx context.Context, nodes, pods int) error {
	text, err := controlplane.Read(ctx, http.DefaultClient, p.metricsURL)
	if err != nil {
		return fmt.Errorf("reading the metrics of gpu-binpacker: %w", err)
	}
	metrics, err := controlplane.ParseMetrics(text)
	if err != nil {
		return err
	}
	gotNodes, gotPods := metrics.Sum("gpu_binpacker_index_nodes", nil), metrics.Sum("gpu_binpacker_index_pods", nil)
	if gotNodes != float64(nodes) || gotPods != float64(pods) {
		return fmt.Errorf("gpu-binpacker has %.0f nodes and %.0f pods in its index, not %d and %d", gotNodes, gotPods, nodes, pods)
	}
	return nil
}

// WriteCertificate writes a serving certificate for loopback into dir.
func WriteCertificate(dir string) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return fmt.Errorf("making a certificate: %w", err)
	}
	for name, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("writing a certificate: %w", err)
		}
	}
	return nil
}

// FreePort returns a port that nothing listens on.
func FreePort() (int, error) {
	ports, err := freePorts(1)
	if err != nil {
		return 0, fmt.Errorf("finding a port: %w", err)
	}
	return ports[0], nil
}

// freePorts returns ports that nothing listens on; they are held until all are
// found, so that they differ.
func freePorts(count int) ([]int, error) {
	var ports []int
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			l.Close()
		}
	}()
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, listener)
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
