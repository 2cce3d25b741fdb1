package check

import (
	"context"
	"errors"
	"fmt"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// cluster is what the checks of one pass read. Each thing is read once, when the
// first check asks for it.
type cluster struct {
	Options
	version     fact[*version.Version]
	hook        fact[*admissionregistrationv1.MutatingWebhookConfiguration]
	settings    fact[config.Configuration]
	installed   fact[*appsv1.Deployment]
	labelled    fact[[]corev1.Namespace]
	nodeList    fact[[]corev1.Node]
	podList     fact[[]corev1.Pod]
	workloads   fact[[]appsv1.Deployment]
	certificate fact[[]certmanagerv1.Certificate]
	called      fact[calls]
}

// fact is something that is read once.
type fact[T any] struct {
	read  bool
	value T
	err   error
}

func (f *fact[T]) get(read func() (T, error)) (T, error) {
	if !f.read {
		f.value, f.err = read()
		f.read = true
	}
	return f.value, f.err
}

func (c *cluster) serverVersion() (*version.Version, error) {
	return c.version.get(func() (*version.Version, error) {
		info, err := c.Kubernetes.Discovery().ServerVersion()
		if err != nil {
			return nil, err
		}
		return version.ParseGeneric(info.GitVersion)
	})
}

// errNotRegistered: the configuration is there, but without our webhook.
var errNotRegistered = errors.New("it has no webhook " + config.WebhookName)

// webhook returns our webhook and the configuration that it is part of.
func (c *cluster) webhook(ctx context.Context) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.MutatingWebhook, error) {
	hook, err := c.hook.get(func() (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
		return c.Kubernetes.AdmissionregistrationV1().MutatingWebhookConfigurations().
			Get(ctx, config.WebhookConfigurationName, metav1.GetOptions{})
	})
	if err != nil {
		return nil, nil, err
	}
	for i := range hook.Webhooks {
		if hook.Webhooks[i].Name == config.WebhookName {
			return hook, &hook.Webhooks[i], nil
		}
	}
	return hook, nil, errNotRegistered
}

// needsWebhook is the verdict of checks that look at the webhook when there is none.
func needsWebhook(err error) verdict {
	if v := unread("get mutatingwebhookconfigurations", err); v.level == Skipped {
		return v
	}
	return skip("needs GB301")
}

// systemNamespace is where the webhook runs.
func (c *cluster) systemNamespace(ctx context.Context) string {
	if _, webhook, err := c.webhook(ctx); err == nil && webhook.ClientConfig.Service != nil {
		return webhook.ClientConfig.Service.Namespace
	}
	return config.SystemNamespace
}

func (c *cluster) configuration(ctx context.Context) (config.Configuration, error) {
	return c.settings.get(func() (config.Configuration, error) { return c.Configuration(ctx) })
}

// assumed is the configuration, or the default one when it cannot be read, which
// GB304 says.
func (c *cluster) assumed(ctx context.Context) config.Configuration {
	cfg, err := c.configuration(ctx)
	if err != nil {
		return config.Default()
	}
	return cfg
}

func (c *cluster) deployment(ctx context.Context) (*appsv1.Deployment, error) {
	return c.installed.get(func() (*appsv1.Deployment, error) { return c.Deployment(ctx) })
}

// namespaces returns all with the label, whatever its value, sorted by name.
func (c *cluster) namespaces(ctx context.Context) ([]corev1.Namespace, error) {
	return c.labelled.get(func() ([]corev1.Namespace, error) {
		options := metav1.ListOptions{LabelSelector: config.LabelEnabled}
		return list[corev1.Namespace](ctx, options, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.Kubernetes.CoreV1().Namespaces().List(ctx, o)
		})
	})
}

func (c *cluster) nodes(ctx context.Context) ([]corev1.Node, error) {
	return c.nodeList.get(func() ([]corev1.Node, error) {
		return list[corev1.Node](ctx, metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.Kubernetes.CoreV1().Nodes().List(ctx, o)
		})
	})
}

// pods returns all pods of the cluster.
func (c *cluster) pods(ctx context.Context) ([]corev1.Pod, error) {
	return c.podList.get(func() ([]corev1.Pod, error) {
		return list[corev1.Pod](ctx, metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.Kubernetes.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		})
	})
}

// deployments returns all Deployments of the cluster: other products are found by
// their names and labels, whatever the namespace.
func (c *cluster) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	return c.workloads.get(func() ([]appsv1.Deployment, error) {
		return list[appsv1.Deployment](ctx, metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.Kubernetes.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, o)
		})
	})
}

// certificates returns cert-manager's Certificates of the installation.
func (c *cluster) certificates(ctx context.Context) ([]certmanagerv1.Certificate, error) {
	return c.certificate.get(func() ([]certmanagerv1.Certificate, error) {
		var all certmanagerv1.CertificateList
		err := c.Certificates.List(ctx, &all, client.InNamespace(c.systemNamespace(ctx)))
		return all.Items, err
	})
}

// list reads a list page by page, so that the API server never holds all of a
// large cluster at once.
func list[T any](ctx context.Context, options metav1.ListOptions, page pager.ListPageFunc) ([]T, error) {
	var all []T
	err := pager.New(page).EachListItem(ctx, options, func(object runtime.Object) error {
		item, ok := any(object).(*T)
		if !ok {
			return fmt.Errorf("listing: got a %T", object)
		}
		all = append(all, *item)
		return nil
	})
	return all, err
}

// may asks the API server whether the user may do something. namespace is empty
// for the whole cluster.
func (c *cluster) may(ctx context.Context, verb, group, resource, namespace string) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: group, Resource: resource, Namespace: namespace},
	}}
	review, err := c.Kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking for the permission to %s %s: %w", verb, resource, err)
	}
	return review.Status.Allowed, nil
}

// asksForGPU tells whether a pod asks for a configured GPU resource.
func asksForGPU(pod *corev1.Pod, resources config.Resources) bool {
	_, reason := demand.Of(pod, resources)
	return reason == steering.ReasonNone
}
