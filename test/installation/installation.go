package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

const (
	// waitTimeout limits each wait of Install: for a certificate, for the CA
	// in the webhook configuration, for steering.
	waitTimeout = time.Minute
	// waitInterval is the pause between two looks.
	waitInterval = 100 * time.Millisecond
)

// Options say what to install. The zero value is config/default with as many
// replicas as its Deployment has.
type Options struct {
	// Replicas is the number of processes. Default: the Deployment's.
	Replicas int

	// Kustomization is the folder to render, relative to the repository.
	// Default config/default.
	Kustomization string

	// Configuration replaces the configuration file in the ConfigMap. Empty
	// means the shipped one. The resource names in it must be covered by the
	// shipped matchConditions.
	Configuration []byte

	// Binary is the program. Default: built from the repository.
	Binary string

	// APIServer is the URL where the replicas find the API server, for
	// instance through a proxy. Default: the API server's own.
	APIServer string

	// Args are appended to the command line of each replica.
	Args []string

	// Log receives one line per step. Nil means no output.
	Log io.Writer
}

// Installation is an installed and running gpu-binpacker.
type Installation struct {
	cp       *controlplane.ControlPlane
	options  Options
	bundle   *bundle
	replicas []*Replica
	proxy    *proxy
	// scraper may read the replicas' metrics.
	scraper *http.Client

	// cancel ends the goroutines that background waits for.
	cancel     context.CancelFunc
	background sync.WaitGroup
	stop       sync.Once
}

// Install applies the manifests, starts the replicas and returns when they are
// ready and the API server knows their CA. ctx limits the start; what it started
// runs until Stop. The control plane needs cert-manager.
func Install(ctx context.Context, cp *controlplane.ControlPlane, options Options) (*Installation, error) {
	start := time.Now()
	installed, err := install(ctx, cp, options)
	if err != nil {
		return nil, fmt.Errorf("installing gpu-binpacker: %w", err)
	}
	fmt.Fprintf(installed.options.Log, "gpu-binpacker installed in %.1f s\n", time.Since(start).Seconds())
	return installed, nil
}

// install is Install in order.
func install(ctx context.Context, cp *controlplane.ControlPlane, options Options) (_ *Installation, err error) {
	if options.Log == nil {
		options.Log = io.Discard
	}
	if options.Kustomization == "" {
		options.Kustomization = filepath.Join("config", "default")
	}
	i := &Installation{cp: cp, options: options}
	defer func() {
		if err != nil {
			cp.KeepDir()
			err = errors.Join(err, i.Stop())
		}
	}()
	if i.options.Binary == "" {
		if i.options.Binary, err = buildProduct(ctx, options.Log); err != nil {
			return nil, err
		}
	}
	if i.bundle, err = render(options.Kustomization); err != nil {
		return nil, err
	}
	if i.options.Replicas == 0 {
		i.options.Replicas = i.bundle.replicas()
	}
	if i.proxy, err = listen(cp, i.options.Replicas); err != nil {
		return nil, err
	}
	if err := i.bundle.adapt(i.proxy.port, options.Configuration); err != nil {
		return nil, err
	}
	if err := i.bundle.apply(ctx, cp.Client()); err != nil {
		return nil, err
	}
	if err := i.bundle.waitCertificates(ctx, cp.Client()); err != nil {
		return nil, err
	}
	if i.scraper, err = i.newScraper(ctx); err != nil {
		return nil, err
	}
	if err := i.start(ctx); err != nil {
		return nil, err
	}
	return i, i.bundle.waitCABundle(ctx, cp.Client())
}

// start starts the replicas and what stands in for kubelet and kube-proxy.
func (i *Installation) start(ctx context.Context) error {
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i.cancel = cancel
	certificates := i.CertificatesDir()
	mirror, err := newSecretMirror(i.cp.RESTConfig(), i.bundle.namespace(), i.bundle.certificateSecret(), certificates)
	if err != nil {
		return err
	}
	i.background.Go(func() { mirror.Run(background.Done()) })
	i.background.Go(i.proxy.serve)
	if i.options.Replicas > 1 {
		i.background.Go(func() { i.rotate(background) })
	}
	group, starting := errgroup.WithContext(ctx)
	for n := range i.options.Replicas {
		replica, err := i.newReplica(starting, n, certificates)
		if err != nil {
			return err
		}
		i.replicas = append(i.replicas, replica)
		group.Go(func() error { return replica.Start(starting) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return i.startReadiness(ctx, background)
}

// Replicas returns the processes of the webhook, in the order of the proxy's
// backends.
func (i *Installation) Replicas() []*Replica { return i.replicas }

// CertificatesDir is where the replicas find their certificate, as in a volume of
// its Secret.
func (i *Installation) CertificatesDir() string {
	return filepath.Join(i.cp.Dir(), "gpu-binpacker-certs")
}

// Stop stops the replicas and everything else that Install started. The objects
// stay; the control plane's end removes them. Only the first call does anything.
func (i *Installation) Stop() (err error) {
	i.stop.Do(func() {
		if i.cancel != nil {
			i.cancel()
		}
		if i.proxy != nil {
			i.proxy.close()
		}
		for _, replica := range i.replicas {
			err = errors.Join(err, replica.Stop())
		}
		i.background.Wait()
		if i.scraper != nil {
			i.scraper.CloseIdleConnections()
		}
	})
	return err
}

// buildProduct builds the binary from the repository.
func buildProduct(ctx context.Context, out io.Writer) (string, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return "", err
	}
	program := programs.Product(root)
	return program.Output, program.Build(ctx, out)
}
