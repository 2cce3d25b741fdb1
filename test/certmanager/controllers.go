package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cert-manager/cert-manager/pkg/controller"

	// A blank import registers the controller or issuer with cert-manager.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

const (
	// workers is the number of goroutines per controller, cert-manager's
	// own default.
	workers = 5

	// The release waits at least an hour before it retries a failed
	// request. A test must not: a request can fail merely because its
	// issuer is not Ready yet.
	minimumRetry = time.Second
	maximumRetry = 10 * time.Second
)

// controllers is a set of cert-manager's controllers that share one set of
// informers.
type controllers struct {
	shared *controller.Context
	byName map[string]controller.Interface
	// informersSynced is set once, when every informer has its first list.
	informersSynced atomic.Bool
}

// newControllers constructs every controller that the imports above registered.
// Nothing runs before run.
func newControllers(ctx context.Context, kubeconfig string) (*controllers, error) {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:    kubeconfig,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: minimumRetry,
			CertificateRequestMaximumBackoffDuration: maximumRetry,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("building the controller context: %w", err)
	}
	byName := map[string]controller.Interface{}
	for name, construct := range controller.Known() {
		if byName[name], err = construct(factory); err != nil {
			return nil, fmt.Errorf("building controller %s: %w", name, err)
		}
	}
	// The informer factories are shared by all contexts of one factory, so
	// any context can start them.
	shared, err := factory.Build()
	if err != nil {
		return nil, fmt.Errorf("building the shared context: %w", err)
	}
	return &controllers{shared: shared, byName: byName}, nil
}

// run starts the informers and the controllers and blocks until ctx ends or one
// of them fails.
func (c *controllers) run(ctx context.Context) error {
	c.shared.SharedInformerFactory.Start(ctx.Done())
	c.shared.KubeSharedInformerFactory.Start(ctx.Done())

	group, ctx := errgroup.WithContext(ctx)
	for name, each := range c.byName {
		group.Go(func() error {
			if err := each.Run(workers, ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("running controller %s: %w", name, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		c.shared.SharedInformerFactory.WaitForCacheSync(ctx.Done())
		c.shared.KubeSharedInformerFactory.WaitForCacheSync(ctx.Done())
		c.informersSynced.Store(ctx.Err() == nil)
		return nil
	})
	return group.Wait()
}

// synced is a readiness check: every informer has its first list.
func (c *controllers) synced(*http.Request) error {
	if !c.informersSynced.Load() {
		return errors.New("certificate informers are not synced")
	}
	return nil
}
