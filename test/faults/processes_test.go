package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
)

// each calls a function for all replicas at once.
func (b *bed) each(do func(*installation.Replica) error) error {
	var group errgroup.Group
	for _, replica := range b.installed.Replicas() {
		group.Go(func() error { return do(replica) })
	}
	return group.Wait()
}

func killReplicas(_ context.Context, b *bed) error {
	return b.each(func(r *installation.Replica) error { return r.Kill() })
}

// startReplicas does what a kubelet does with a container that has ended.
func startReplicas(ctx context.Context, b *bed) error {
	return b.each(func(r *installation.Replica) error { return r.Start(ctx) })
}

func freezeReplicas(_ context.Context, b *bed) error { return b.signal(syscall.SIGSTOP) }

func thawReplicas(_ context.Context, b *bed) error { return b.signal(syscall.SIGCONT) }

func (b *bed) signal(signal os.Signal) error {
	return b.each(func(r *installation.Replica) error { return r.Signal(signal) })
}

// rollReplicas restarts one replica after the other, the next when the last one
// is ready and has served, as a rollout of a Deployment does. It is harder than
// that: the API server learns of the end of a replica from the replica only.
func rollReplicas(ctx context.Context, b *bed) error {
	if err := b.waitFor(ctx, "both replicas to serve", bothServe, time.Now()); err != nil {
		return err
	}
	for n, replica := range b.installed.Replicas() {
		if err := replica.Stop(); err != nil {
			return err
		}
		if err := replica.Start(ctx); err != nil {
			return err
		}
		err := wait(ctx, replica.Name()+" to serve after its restart", func(ctx context.Context) (bool, error) {
			served, err := b.installed.Served(ctx)
			return err == nil && served[n] > 0, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// bothServe is true when every replica has served since its start.
func bothServe(ctx context.Context, b *bed, _ time.Time) (bool, error) {
	served, err := b.installed.Served(ctx)
	if err != nil {
		return false, err
	}
	for n, count := range served {
		if count == 0 {
			return false, fmt.Errorf("replica %d has not served", n)
		}
	}
	return len(served) > 1, nil
}

// cachesNotSynced restarts the replicas while they may not list anything, so that
// their caches stay empty.
func cachesNotSynced() fault {
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "gpu-binpacker"}}
	var starting errgroup.Group
	return fault{
		name: "caches not synced",
		inject: func(ctx context.Context, b *bed) error {
			if err := b.Client().Get(ctx, client.ObjectKeyFromObject(binding), binding); err != nil {
				return fmt.Errorf("reading the role's binding: %w", err)
			}
			if err := b.each(func(r *installation.Replica) error { return r.Stop() }); err != nil {
				return err
			}
			if err := b.Client().Delete(ctx, binding.DeepCopy()); err != nil {
				return fmt.Errorf("deleting the role's binding: %w", err)
			}
			if err := wait(ctx, "the role to be withdrawn", b.mayNotList); err != nil {
				return err
			}
			starting.Go(func() error { return startReplicas(ctx, b) }) // ready after the end
			return nil
		},
		shows: unsteeredByRunning,
		end: func(ctx context.Context, b *bed) error {
			binding.ResourceVersion, binding.UID = "", ""
			err := b.Client().Create(ctx, binding)
			return errors.Join(err, starting.Wait())
		},
	}
}

// mayNotList tells whether the webhook's account may not list pods.
func (b *bed) mayNotList(ctx context.Context) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + config.SystemNamespace + ":gpu-binpacker",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"},
	}}
	err := b.Client().Create(ctx, review)
	return !review.Status.Allowed, err
}

// killAPIServer is a crash, so that creations lose their answers too. An orderly
// end waits up to a minute for requests under way.
func killAPIServer(ctx context.Context, b *bed) error {
	if err := b.countCalls(ctx); err != nil {
		return err
	}
	err := b.Component(controlplane.APIServer).Kill()
	b.rejections.last, b.failOpens.last = 0, 0
	return err
}

func startAPIServer(ctx context.Context, b *bed) error {
	return b.Component(controlplane.APIServer).Start(ctx)
}

func stopEtcd(_ context.Context, b *bed) error { return b.Component(controlplane.Etcd).Stop() }

func startEtcd(ctx context.Context, b *bed) error {
	if err := b.Component(controlplane.Etcd).Start(ctx); err != nil {
		return err
	}
	return wait(ctx, "the API server to reach etcd again", func(ctx context.Context) (bool, error) {
		_, err := b.Clientset().Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, err
	})
}

func stopScheduler(_ context.Context, b *bed) error {
	return b.Component(controlplane.KubeScheduler).Stop()
}

func startScheduler(ctx context.Context, b *bed) error {
	return b.Component(controlplane.KubeScheduler).Start(ctx)
}

// boundAgain is true when a steered pod that was created since is bound to the
// node where the webhook expects it.
func boundAgain(ctx context.Context, b *bed, since time.Time) (bool, error) {
	pods := &corev1.PodList{}
	if err := b.Client().List(ctx, pods, client.InNamespace(steeredNamespace)); err != nil {
		return false, err
	}
	fresh := map[string]bool{}
	for _, c := range b.steered.Since(since) {
		fresh[c.Name] = true
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if fresh[pod.Name] && pod.Spec.NodeName != "" && pod.Spec.NodeName == pod.Annotations[config.AnnotationTarget] {
			return true, nil
		}
	}
	return false, nil
}
