package check

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// objects returns what the clientset knows.
func (b *bed) objects() []runtime.Object {
	var all []runtime.Object
	if b.hook != nil {
		all = append(all, b.hook)
	}
	if b.secret != nil {
		all = append(all, b.secret)
	}
	for _, o := range b.deployments {
		all = append(all, o)
	}
	for _, o := range b.namespaces {
		all = append(all, o)
	}
	for _, o := range b.nodes {
		all = append(all, o)
	}
	for _, o := range b.pods {
		all = append(all, o)
	}
	for _, o := range b.configMaps {
		all = append(all, o)
	}
	return all
}

// deny is the error of a request, if it is one that fails.
func (b *bed) deny(verb, resource string) error {
	if err := b.failing(verb, resource); err != nil {
		return err
	}
	if b.denied[verb+" "+resource] || b.denied["*"] && resource != "selfsubjectaccessreviews" {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
	}
	return nil
}

func (b *bed) failing(verb, resource string) error {
	if b.broken[verb+" "+resource] {
		return errors.New("connection refused")
	}
	return nil
}

// clients makes the fake clients.
func (b *bed) clients(t *testing.T) Options {
	t.Helper()
	clientset := fake.NewClientset(b.objects()...)
	discovery := clientset.Discovery().(*fakediscovery.FakeDiscovery)
	discovery.FakedServerVersion = &version.Info{GitVersion: b.version}
	for _, each := range b.served {
		group, name := filepath.Split(each)
		clientset.Resources = append(clientset.Resources, &metav1.APIResourceList{
			GroupVersion: filepath.Clean(group), APIResources: []metav1.APIResource{{Name: name}},
		})
	}
	clientset.PrependReactor("create", "pods", b.tryPod(t))
	clientset.PrependReactor("create", "selfsubjectaccessreviews", func(action ktesting.Action) (bool, runtime.Object, error) {
		review := action.(ktesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = !b.denied["*"] && !b.denied[asked.Verb+" "+asked.Resource]
		return true, review, nil
	})
	clientset.PrependReactor("*", "*", func(action ktesting.Action) (bool, runtime.Object, error) {
		what := action.GetResource().Resource
		if what == "version" || what == "resource" || what == "group" { // discovery is open to everybody
			err := b.failing(action.GetVerb(), what)
			return err != nil, nil, err
		}
		err := b.deny(action.GetVerb(), what)
		return err != nil, nil, err
	})
	options := b.options
	options.Kubernetes = clientset
	options.Certificates = b.certificatesReader(t)
	options.Metrics = func(context.Context) ([]byte, error) { return []byte(b.metrics), b.metricsErr }
	options.Configuration = func(context.Context) (config.Configuration, error) { return b.cfg, b.cfgErr }
	options.Deployment = func(ctx context.Context) (*appsv1.Deployment, error) {
		list, err := clientset.AppsV1().Deployments(config.SystemNamespace).List(ctx, metav1.ListOptions{LabelSelector: nameLabel + "=gpu-binpacker"})
		if err != nil {
			return nil, err
		}
		if len(list.Items) == 0 {
			return nil, apierrors.NewNotFound(appsv1.Resource("deployments"), "gpu-binpacker")
		}
		return &list.Items[0], nil
	}
	options.Now = func() time.Time { return now }
	return options
}

// tryPod answers the creation of the pod on trial.
func (b *bed) tryPod(t *testing.T) ktesting.ReactionFunc {
	return func(action ktesting.Action) (bool, runtime.Object, error) {
		create := action.(ktesting.CreateActionImpl)
		if dryRun := create.GetCreateOptions().DryRun; len(dryRun) != 1 || dryRun[0] != metav1.DryRunAll {
			t.Errorf("a pod is created with dryRun %v", dryRun)
		}
		pod := create.GetObject().(*corev1.Pod).DeepCopy()
		pod.Namespace, pod.Spec.SchedulerName = action.GetNamespace(), corev1.DefaultSchedulerName
		var err error
		if b.steers(pod) {
			err = b.trial(pod)
		}
		if err == nil && b.judge != nil {
			err = b.judge(pod)
		}
		return true, pod, err
	}
}

// steers tells whether the webhook is called for the pod and does not leave it alone.
func (b *bed) steers(pod *corev1.Pod) bool {
	return pod.Labels[config.LabelEnabled] != "false" && len(pod.Spec.SchedulingGates) == 0 && asksForGPU(pod, b.cfg.Resources)
}

func (b *bed) certificatesReader(t *testing.T) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := certmanagerv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := fakeclient.NewClientBuilder().WithScheme(scheme)
	if b.certificate != nil {
		builder = builder.WithObjects(b.certificate)
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if b.noCRD {
				return &meta.NoKindMatchError{}
			}
			if err := b.deny("list", "certificates"); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
}
