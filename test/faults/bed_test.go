package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
)

const (
	// steeredNamespace has opted in, referenceNamespace has not: its pods never
	// come near the webhook and show how long a creation takes at that moment.
	steeredNamespace   = "faults"
	referenceNamespace = "reference"

	// nodes is how many nodes with 8 GPUs there are. Pods of both streams fit
	// several times.
	nodes = 24

	// waitTimeout limits each wait. Back-off is the longest reason to wait:
	// clients of the API server come back to it within half a minute.
	waitTimeout  = 2 * time.Minute
	waitInterval = 50 * time.Millisecond
)

// bed is a control plane with the product on it, as shipped, with two replicas,
// and with gates in the two directions of its traffic.
type bed struct {
	*controlplane.ControlPlane
	installed *installation.Installation
	// toWebhook is between the API server and the replicas, toAPIServer the
	// other way.
	toWebhook, toAPIServer *gate
	// faultFile makes decisions go wrong, see decisions_test.go.
	faultFile string
	// memoryLimit is the Deployment's, in bytes.
	memoryLimit int64

	// rejections and failOpens count what the API server did with failed calls
	// of the webhook in this row.
	rejections, failOpens tally
	// steered and reference are the streams of this row.
	steered, reference *stream
	// outage is when the API server itself did not serve in this row.
	outage period
	// normal is the slowest creation of the row without a fault.
	normal time.Duration
}

// startBed starts everything.
func startBed(ctx context.Context) (_ *bed, err error) {
	cp, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Kwok: true, CertManager: true, Log: os.Stdout,
	})
	if err != nil {
		return nil, err
	}
	b := &bed{ControlPlane: cp, faultFile: filepath.Join(cp.Dir(), "fault")}
	defer func() {
		if err != nil {
			cp.KeepDir()
			err = errors.Join(err, b.stop())
		}
	}()
	for namespace, labels := range map[string]map[string]string{
		steeredNamespace: {config.LabelEnabled: "true"}, referenceNamespace: nil,
	} {
		if err := cp.CreateNamespace(ctx, namespace, labels); err != nil {
			return nil, err
		}
	}
	gpus := map[string]string{"cpu": "96", "memory": "1152Gi", "nvidia.com/gpu": "8"}
	if err := cp.CreateNodes(ctx, controlplane.Nodes("gpu", nodes, gpus)...); err != nil {
		return nil, err
	}
	return b, b.install(ctx)
}

// install installs the product behind the gates.
func (b *bed) install(ctx context.Context) error {
	apiServer, err := url.Parse(b.RESTConfig().Host)
	if err != nil {
		return fmt.Errorf("reading the API server's address: %w", err)
	}
	apiPort, err := strconv.Atoi(apiServer.Port())
	if err != nil {
		return fmt.Errorf("reading the API server's port: %w", err)
	}
	if b.toAPIServer, err = b.newGate(apiPort); err != nil {
		return err
	}
	b.installed, err = installation.Install(ctx, b.ControlPlane, installation.Options{
		APIServer: "https://" + b.toAPIServer.address, Log: os.Stdout,
	})
	if err != nil {
		return err
	}
	webhook, err := b.webhook(ctx)
	if err != nil {
		return err
	}
	service := webhook.Webhooks[0].ClientConfig.Service
	if b.toWebhook, err = b.newGate(int(*service.Port)); err != nil {
		return err
	}
	if err := b.patchWebhook(ctx, "/webhooks/0/clientConfig/service/port", b.toWebhook.port); err != nil {
		return err
	}
	if b.memoryLimit, err = b.readMemoryLimit(ctx); err != nil {
		return err
	}
	b.rejections.read, b.failOpens.read = b.installed.Rejections, b.installed.FailOpens
	return b.installed.WaitSteering(ctx)
}

// newGate opens a gate before a port of this machine.
func (b *bed) newGate(backend int) (*gate, error) {
	port, err := b.ReservePort()
	if err != nil {
		return nil, err
	}
	return openGate(port, backend)
}

// stop ends everything. Parts that were never started are left out.
func (b *bed) stop() (err error) {
	if b.installed != nil {
		err = b.installed.Stop()
	}
	for _, g := range []*gate{b.toWebhook, b.toAPIServer} {
		if g != nil {
			g.close()
		}
	}
	return errors.Join(err, b.Stop())
}

// webhook reads the webhook configuration.
func (b *bed) webhook(ctx context.Context) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	webhook := &admissionregistrationv1.MutatingWebhookConfiguration{}
	err := b.Client().Get(ctx, client.ObjectKey{Name: config.WebhookConfigurationName}, webhook)
	if err != nil {
		return nil, fmt.Errorf("reading the webhook configuration: %w", err)
	}
	return webhook, nil
}

// patchWebhook replaces a part of the webhook configuration.
func (b *bed) patchWebhook(ctx context.Context, path string, value any) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": path, "value": value}})
	if err != nil {
		return err
	}
	webhook := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: config.WebhookConfigurationName},
	}
	if err := b.Client().Patch(ctx, webhook, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("changing the webhook configuration: %w", err)
	}
	return nil
}

// wait polls until a condition is true. Errors of the condition do not end the
// waiting; the last one is reported.
func wait(ctx context.Context, what string, condition func(context.Context) (bool, error)) error {
	var last error
	err := apiwait.PollUntilContextTimeout(ctx, waitInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		ok, err := condition(ctx)
		if ctx.Err() == nil { // else the error only says that time is up
			last = err
		}
		return ok && err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, errors.Join(err, last))
	}
	return nil
}

// tally sums up a counter of the API server, which begins again at 0 when the API
// server restarts.
type tally struct {
	read func(context.Context) (int, error)
	last int
	sum  int
}

// begin starts a new sum.
func (c *tally) begin(ctx context.Context) (err error) {
	c.last, err = c.read(ctx)
	c.sum = 0
	return err
}

// add adds what has come since the last call.
func (c *tally) add(ctx context.Context) error {
	now, err := c.read(ctx)
	if err != nil {
		return err
	}
	c.sum += now - c.last
	c.last = now
	return nil
}
