package controlplane

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateNamespace creates a namespace in which pods can be created at once: its
// default service account, which every pod needs, exists.
func (cp *ControlPlane) CreateNamespace(ctx context.Context, name string, labels map[string]string) error {
	_, err := cp.createNamespace(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	return err
}

// GenerateNamespace is CreateNamespace with a name that is the prefix and some random
// letters, which it returns: a test that runs again on the same control plane cannot
// use the first run's.
func (cp *ControlPlane) GenerateNamespace(ctx context.Context, prefix string, labels map[string]string) (name string, err error) {
	return cp.createNamespace(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-", Labels: labels}})
}

func (cp *ControlPlane) createNamespace(ctx context.Context, namespace *corev1.Namespace) (name string, err error) {
	if err := cp.client.Create(ctx, namespace); err != nil {
		return "", fmt.Errorf("creating namespace %s%s: %w", namespace.GenerateName, namespace.Name, err)
	}
	return namespace.Name, cp.ensureDefaultServiceAccount(ctx, namespace.Name)
}

// ensureDefaultServiceAccount waits for kube-controller-manager to create the
// account, or creates it in its place when it does not run.
func (cp *ControlPlane) ensureDefaultServiceAccount(ctx context.Context, namespace string) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	if !cp.options.ControllerManager {
		if err := cp.client.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating the default service account of namespace %s: %w", namespace, err)
		}
		return nil
	}
	if err := cp.waitExists(ctx, account); err != nil {
		return fmt.Errorf("waiting for the default service account of namespace %s: %w", namespace, err)
	}
	return nil
}

// waitNamespaces waits for the namespaces that the API server creates itself.
func (cp *ControlPlane) waitNamespaces(ctx context.Context) error {
	for _, name := range []string{"default", "kube-system"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := cp.waitExists(ctx, namespace); err != nil {
			return fmt.Errorf("waiting for namespace %s: %w", name, err)
		}
	}
	return nil
}

// waitExists waits until an object exists.
func (cp *ControlPlane) waitExists(ctx context.Context, object client.Object) error {
	key := types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		last = cp.client.Get(ctx, key, object)
		return last == nil, nil
	})
	return errors.Join(err, last)
}
