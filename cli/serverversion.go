package cli

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

const (
	// versionInterval is the pause between two looks at the API server's version.
	// Steering is to be right within a minute of an upgrade, with one look lost.
	versionInterval = 20 * time.Second
	// versionTimeout limits one look. The first one holds up the start, which is not
	// worth more than this: an API server that does not answer serves no lists either.
	versionTimeout = 5 * time.Second
)

// versionFollower keeps the version of the scheduler in step with the API server's.
type versionFollower struct {
	// server returns the gitVersion of the API server.
	server  func() (string, error)
	version *scheduler.Version
	// configured is the version of the configuration, zero for none.
	configured config.MinorVersion
	log        logr.Logger
	// last is what the API server had at the last look, unreadable whether it could not
	// be told then: each change is logged once.
	last       config.MinorVersion
	unreadable bool
}

// followVersion looks at the API server's version now and from time to time while the
// manager runs.
func followVersion(ctx context.Context, mgr manager.Manager, version *scheduler.Version, cfg config.Scheduler, log logr.Logger) error {
	server, err := newServerVersion(mgr.GetConfig())
	if err != nil {
		return err
	}
	f := &versionFollower{server: server, version: version, log: log}
	if cfg.KubernetesVersion != "" {
		if f.configured, err = config.ParseMinorVersion(cfg.KubernetesVersion); err != nil {
			return fmt.Errorf("scheduler.kubernetesVersion: %w", err)
		}
	}
	f.look(ctx)
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		wait.UntilWithContext(ctx, f.look, versionInterval)
		return nil
	}))
}

// newServerVersion returns a function that asks for the API server's version, each
// time on a connection of its own: of several API servers behind a load balancer a
// kept connection would show only one, and while they are upgraded each may have
// another version.
func newServerVersion(restConfig *rest.Config) (func() (string, error), error) {
	c := rest.CopyConfig(restConfig)
	c.Timeout = versionTimeout
	// Clients with the same settings share their connections. A dialer of its own keeps
	// this one apart.
	c.Dial = (&net.Dialer{Timeout: versionTimeout}).DialContext
	httpClient, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("creating the client for the API server's version: %w", err)
	}
	client, err := discovery.NewDiscoveryClientForConfigAndClient(c, httpClient)
	if err != nil {
		return nil, fmt.Errorf("creating the client for the API server's version: %w", err)
	}
	return func() (string, error) {
		defer utilnet.CloseIdleConnectionsFor(httpClient.Transport)
		info, err := client.ServerVersion()
		if err != nil {
			return "", err
		}
		return info.GitVersion, nil
	}, nil
}

// look asks the API server once.
func (f *versionFollower) look(context.Context) {
	gitVersion, err := f.server()
	var server config.MinorVersion
	if err == nil {
		server, err = config.ParseServerVersion(gitVersion)
	}
	if err != nil {
		if !f.unreadable {
			f.log.Info("The version of the API server cannot be read; going by the versions known so far, or the newest",
				"versions", f.version.Held(), "source", f.version.Source(), "error", err.Error())
		}
		f.unreadable = true
		return
	}
	f.unreadable = false
	changed := f.version.See(server)
	if changed || f.last == (config.MinorVersion{}) {
		f.log.Info("Weights are computed for these versions of kube-scheduler",
			"versions", f.version.Held(), "source", f.version.Source(), "apiServer", gitVersion)
	}
	if f.configured != (config.MinorVersion{}) && server != f.last && !scheduler.SameFormulas(server, f.configured) {
		f.log.Info("The configured version of the scheduler has other formulas than that of the API server, so pods may not be packed; remove scheduler.kubernetesVersion from the configuration",
			"configured", f.configured, "apiServer", gitVersion)
	}
	f.last = server
}
