package attack

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiwait "k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
)

const (
	// victimsNamespace has opted in, referenceNamespace has not: its pods never come
	// near the webhook and show how long a creation takes at that moment.
	victimsNamespace   = "victims"
	referenceNamespace = "reference"
	// victimsWebhook is the name under which the API server counts its calls for the
	// victims' pods.
	victimsWebhook = "victims.gpu-binpacker.io"

	// poolLabel and sharedPool select the nodes that attacker and victims share in some
	// rows.
	poolLabel, sharedPool = "test.gpu-binpacker.io/pool", "shared"
	// sharedNodes is how many these are. The victims, who want a whole node each in such
	// rows, use victimsOnSharedNodes, and more on a machine that deletes slowly. The rest
	// is less than the 100 reservations that 40 pods a second, refused by a quota, leave
	// with each of two replicas in 5 s, and all are less than the nodes that 50 pods a
	// second are refused by.
	sharedNodes, victimsOnSharedNodes = 60, 10
	// normalLabel is on the first normalNodes of them, where it is tried whether pods are
	// packed: so few that the scheduler examines all of them, which it does up to 100.
	normalLabel, normalNodes = "test.gpu-binpacker.io/normal", 50

	// waitTimeout limits each wait.
	waitTimeout  = time.Minute
	waitInterval = 50 * time.Millisecond
)

// bed is a control plane with the product on it, as shipped, with two replicas.
type bed struct {
	*controlplane.ControlPlane
	installed *installation.Installation
	size
	// memoryLimit is the Deployment's, in bytes.
	memoryLimit int64
	// normal is the slowest creation of the row without an attack.
	normal time.Duration
	// hurt: the latest row shows damage.
	hurt bool
}

// startBed starts everything; the end of the test stops it.
func startBed(t *testing.T, form size) *bed {
	t.Helper()
	ctx := t.Context()
	cp := controlplane.StartForTest(t, controlplane.Options{ControllerManager: true, Kwok: true, CertManager: true})
	b := &bed{ControlPlane: cp, size: form}
	for namespace, labels := range map[string]map[string]string{
		victimsNamespace: {config.LabelEnabled: "true"}, referenceNamespace: nil,
	} {
		if err := cp.CreateNamespace(ctx, namespace, labels); err != nil {
			t.Fatal(err)
		}
	}
	gpus := map[string]string{"cpu": "96", "memory": "1152Gi", "nvidia.com/gpu": "8"}
	nodes := controlplane.Nodes(sharedPool, sharedNodes, gpus, controlplane.WithLabels(map[string]string{poolLabel: sharedPool}))
	for _, node := range nodes[:normalNodes] {
		node.Labels[normalLabel] = "true"
	}
	nodes = append(nodes, controlplane.Nodes("gpu", form.nodes-sharedNodes, gpus)...)
	began := time.Now()
	if err := cp.CreateNodes(ctx, nodes...); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d nodes created in %.0f s", len(nodes), time.Since(began).Seconds())
	b.installed = installation.InstallForTest(t, cp, installation.Options{Binary: *binary})
	for _, prepare := range []func(context.Context) error{b.countVictimsApart, b.readMemoryLimit, b.installed.WaitSteering} {
		if err := prepare(ctx); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// countVictimsApart splits the webhook in two, of which the second is called for the
// victims' pods: the API server counts and measures its calls by the webhook's name.
// Everything else is alike.
func (b *bed) countVictimsApart(ctx context.Context) error {
	webhook := &admissionregistrationv1.MutatingWebhookConfiguration{}
	return wait(ctx, "the webhook to be split", func(ctx context.Context) (bool, error) {
		if err := b.Client().Get(ctx, client.ObjectKey{Name: config.WebhookConfigurationName}, webhook); err != nil {
			return false, err
		}
		if len(webhook.Webhooks) != 1 {
			return false, fmt.Errorf("there are %d webhooks", len(webhook.Webhooks))
		}
		victims := webhook.Webhooks[0].DeepCopy()
		victims.Name = victimsWebhook
		selectNamespace(&webhook.Webhooks[0], metav1.LabelSelectorOpNotIn)
		selectNamespace(victims, metav1.LabelSelectorOpIn)
		webhook.Webhooks = append(webhook.Webhooks, *victims)
		err := b.Client().Update(ctx, webhook)
		return err == nil, err // a conflict with cert-manager: once more
	})
}

// selectNamespace lets a webhook be called for the victims' namespace or for all others.
func selectNamespace(webhook *admissionregistrationv1.MutatingWebhook, operator metav1.LabelSelectorOperator) {
	webhook.NamespaceSelector.MatchExpressions = append(webhook.NamespaceSelector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: corev1.LabelMetadataName, Operator: operator, Values: []string{victimsNamespace},
	})
}

// heal restarts the replicas if the latest row has hurt them, as a kubelet would after
// some time.
func (b *bed) heal(ctx context.Context) error {
	if !b.hurt {
		return nil
	}
	err := b.each(func(r *installation.Replica) error { return r.Restart(ctx) })
	if err != nil {
		return fmt.Errorf("restarting the replicas: %w", err)
	}
	b.hurt = false
	return wait(ctx, "the replicas to steer after their restart", func(ctx context.Context) (bool, error) {
		err := b.quiet(ctx)
		return err == nil, err
	})
}

// each calls a function for all replicas at once.
func (b *bed) each(do func(*installation.Replica) error) error {
	var group errgroup.Group
	for _, replica := range b.installed.Replicas() {
		group.Go(func() error { return do(replica) })
	}
	return group.Wait()
}

// clear deletes the pods of a namespace and waits until they are gone.
func (b *bed) clear(ctx context.Context, namespace string) error {
	return wait(ctx, "the pods of "+namespace+" to be deleted", func(ctx context.Context) (bool, error) {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		inNamespace := client.InNamespace(namespace)
		err := b.Client().DeleteAllOf(ctx, &corev1.Pod{}, inNamespace, client.GracePeriodSeconds(0))
		if err == nil {
			err = b.Client().List(ctx, pods, inNamespace)
		}
		return err == nil && len(pods.Items) == 0, err
	})
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
