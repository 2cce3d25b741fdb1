package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// ControlPlane is a running control plane.
type ControlPlane struct {
	options Options
	// root is the repository, dir the directory of logs and data.
	root, dir string

	ca            *authority
	ports         ports
	etcdPort      int
	apiServerPort int

	// kubeconfig is the administrator's file; the clients below use it.
	kubeconfig string
	config     *rest.Config
	clientset  *kubernetes.Clientset
	client     client.Client
	httpClient *http.Client

	// components in the order in which they were started.
	components []*Component
	// addresses of the endpoints that serve /metrics, component name -> URL.
	addresses map[string]string

	mu      sync.Mutex // guards keepDir
	keepDir bool
	stop    sync.Once
}

// Start builds what is missing and starts a control plane. ctx limits the
// start; what it started runs until Stop. When Start fails, nothing is left
// running, and the error quotes the log of the component that failed.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	start := time.Now()
	cp, err := prepare(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("starting the control plane: %w", err)
	}
	if err := cp.start(ctx); err != nil {
		cp.KeepDir()
		return nil, fmt.Errorf("starting the control plane: %w", errors.Join(err, cp.Stop()))
	}
	cp.logf("control plane ready in %.1f s: %s", time.Since(start).Seconds(), cp.dir)
	return cp, nil
}

// prepare does everything that needs no running component.
func prepare(ctx context.Context, options Options) (*ControlPlane, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	if options.Binaries == (programs.Binaries{}) {
		// A build can take minutes: it is never silent.
		out := options.Log
		if out == nil {
			out = os.Stderr
		}
		if options.Binaries, err = programs.Build(ctx, out); err != nil {
			return nil, err
		}
	}
	options.setDefaults()
	cp := &ControlPlane{options: options, root: root, keepDir: options.KeepDir, addresses: map[string]string{}}
	if cp.dir, err = os.MkdirTemp("", "gpu-binpacker-"); err != nil {
		return nil, err
	}
	if err := cp.prepareAccess(); err != nil {
		cp.ports.release()
		return nil, errors.Join(err, os.RemoveAll(cp.dir))
	}
	return cp, nil
}

// prepareAccess makes certificates, addresses and clients.
func (cp *ControlPlane) prepareAccess() (err error) {
	if cp.ca, err = newAuthority(); err != nil {
		return err
	}
	if err := writePKI(cp.dir, cp.ca); err != nil {
		return err
	}
	if cp.etcdPort, err = cp.ports.reserve(); err != nil {
		return err
	}
	if cp.apiServerPort, err = cp.ports.reserve(); err != nil {
		return err
	}
	if cp.kubeconfig, err = cp.kubeconfigFor(adminUser, administratorGroup); err != nil {
		return err
	}
	return cp.newClients()
}

// start starts the components: first those that the others need, then the
// others at once.
func (cp *ControlPlane) start(ctx context.Context) error {
	for _, define := range []func() (*Component, error){cp.etcd, cp.apiServer} {
		component, err := define()
		if err != nil {
			return err
		}
		if err := cp.startComponent(ctx, component); err != nil {
			return err
		}
	}
	if err := cp.waitNamespaces(ctx); err != nil {
		return err
	}
	if cp.options.CertManager {
		if err := cp.installCertManagerCRDs(ctx); err != nil {
			return err
		}
	}
	first := len(cp.components)
	if err := cp.defineOthers(); err != nil {
		return err
	}
	group, startCtx := errgroup.WithContext(ctx)
	for _, component := range cp.components[first:] {
		group.Go(func() error { return component.Start(startCtx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return cp.ensureDefaultServiceAccount(ctx, "default")
}

// defineOthers adds the components that need nothing but the API server.
func (cp *ControlPlane) defineOthers() error {
	var define []func() (*Component, error)
	if cp.options.ControllerManager {
		define = append(define, cp.controllerManager)
	}
	if cp.options.Kwok {
		define = append(define, cp.kwok)
	}
	if cp.options.CertManager {
		define = append(define, cp.certManager)
	}
	for _, scheduler := range cp.options.Schedulers {
		define = append(define, func() (*Component, error) { return cp.scheduler(scheduler) })
	}
	for _, define := range define {
		component, err := define()
		if err != nil {
			return err
		}
		cp.components = append(cp.components, component)
	}
	return nil
}

// startComponent starts one component and remembers it, even when it fails.
func (cp *ControlPlane) startComponent(ctx context.Context, component *Component) error {
	cp.components = append(cp.components, component)
	return component.Start(ctx)
}

// component describes a component of this control plane; args come before the
// caller's own.
func (cp *ControlPlane) component(name, path string, ready func(context.Context) error, args ...string) *Component {
	return NewComponent(ComponentOptions{
		Name:  name,
		Path:  path,
		Args:  append(args, cp.options.ExtraArgs[name]...),
		Dir:   cp.dir,
		Ready: ready,
	})
}

// Component returns the component of that name, one of the constants of this
// package or the name of a Scheduler. It panics when there is none, because
// the name is the caller's mistake.
func (cp *ControlPlane) Component(name string) *Component {
	var names []string
	for _, component := range cp.components {
		if component.Name() == name {
			return component
		}
		names = append(names, component.Name())
	}
	panic(fmt.Sprintf("no component %q, only %s", name, strings.Join(names, ", ")))
}

// Dir returns the directory of logs and data.
func (cp *ControlPlane) Dir() string { return cp.dir }

// KeepDir makes Stop keep the directory of logs and data.
func (cp *ControlPlane) KeepDir() {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	cp.keepDir = true
}

// Stop ends all components, the API server and etcd last, and removes the
// directory unless it is to be kept. Only the first call does anything; others
// wait for it.
func (cp *ControlPlane) Stop() (err error) {
	cp.stop.Do(func() {
		err = cp.stopComponents()
		cp.httpClient.CloseIdleConnections()
		cp.ports.release()
		cp.mu.Lock()
		defer cp.mu.Unlock()
		if cp.keepDir {
			cp.logf("logs and data are kept in %s", cp.dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(cp.dir))
	})
	return err
}

// stopComponents ends the components in the reverse order of their start.
// Nothing is left to be put in order, so it kills them: that takes milliseconds
// where an orderly end takes seconds.
func (cp *ControlPlane) stopComponents() (err error) {
	for _, component := range slices.Backward(cp.components) {
		err = errors.Join(err, component.Kill())
	}
	return err
}

// path returns the path of a file in the control plane's directory.
func (cp *ControlPlane) path(name string) string { return filepath.Join(cp.dir, name) }

// logf writes a line to the caller's log.
func (cp *ControlPlane) logf(format string, args ...any) {
	fmt.Fprintf(cp.options.Log, format+"\n", args...)
}
