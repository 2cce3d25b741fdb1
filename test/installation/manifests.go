package installation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/kustomize"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// fieldManager is who applies, in the objects' managedFields.
const fieldManager = "gpu-binpacker-test-bed"

// bundle is the rendered manifests, with typed copies of those objects that say
// how to run the webhook.
type bundle struct {
	objects       []*unstructured.Unstructured
	deployment    *appsv1.Deployment
	configuration *corev1.ConfigMap
	webhook       *admissionregistrationv1.MutatingWebhookConfiguration
	certificates  []*certmanagerv1.Certificate
}

// render renders a kustomization of the repository.
func render(kustomization string) (*bundle, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	out, err := kustomize.Build(filepath.Join(root, kustomization))
	if err != nil {
		return nil, err
	}
	b, err := parse(out)
	if err != nil {
		return nil, fmt.Errorf("reading the rendered %s: %w", kustomization, err)
	}
	return b, nil
}

// parse decodes the rendered objects.
func parse(manifests []byte) (*bundle, error) {
	b := &bundle{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			b.objects = append(b.objects, object)
		}
	}
	return b, b.find()
}

// find makes the typed copies.
func (b *bundle) find() error {
	for _, object := range b.objects {
		var err error
		switch object.GetKind() {
		case "Deployment":
			b.deployment, err = convert[appsv1.Deployment](object)
		case "ConfigMap":
			b.configuration, err = convert[corev1.ConfigMap](object)
		case "MutatingWebhookConfiguration":
			b.webhook, err = convert[admissionregistrationv1.MutatingWebhookConfiguration](object)
		case "Certificate":
			var certificate *certmanagerv1.Certificate
			certificate, err = convert[certmanagerv1.Certificate](object)
			b.certificates = append(b.certificates, certificate)
		}
		if err != nil {
			return fmt.Errorf("decoding %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if b.deployment == nil || b.configuration == nil || b.webhook == nil {
		return errors.New("there is no Deployment, no ConfigMap or no MutatingWebhookConfiguration")
	}
	return nil
}

// convert makes a typed copy and refuses fields that the type does not have.
func convert[T any](object *unstructured.Unstructured) (*T, error) {
	typed := new(T)
	return typed, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, true)
}

// namespace is where the webhook runs.
func (b *bundle) namespace() string { return b.deployment.Namespace }

// replicas is how many the Deployment asks for.
func (b *bundle) replicas() int {
	if b.deployment.Spec.Replicas == nil {
		return 1
	}
	return int(*b.deployment.Spec.Replicas)
}

// container is the Deployment's only container.
func (b *bundle) container() corev1.Container { return b.deployment.Spec.Template.Spec.Containers[0] }

// certificateSecret is the Secret that the Deployment mounts.
func (b *bundle) certificateSecret() string {
	for _, volume := range b.deployment.Spec.Template.Spec.Volumes {
		if volume.Secret != nil {
			return volume.Secret.SecretName
		}
	}
	return ""
}

// adapt changes what cannot work without kubelet and kube-proxy: see the
// package's documentation.
func (b *bundle) adapt(port int, configuration []byte) error {
	service := b.webhook.Webhooks[0].ClientConfig.Service
	for _, object := range b.objects {
		var err error
		switch {
		case object.GetKind() == "Deployment":
			err = unstructured.SetNestedField(object.Object, int64(0), "spec", "replicas")
		case object.GetKind() == "Service" && object.GetName() == service.Name:
			object.Object["spec"] = map[string]any{"type": "ExternalName", "externalName": serviceNames[0]}
		case object.GetKind() == "MutatingWebhookConfiguration":
			webhooks, _, _ := unstructured.NestedSlice(object.Object, "webhooks")
			for _, webhook := range webhooks {
				err = errors.Join(err, unstructured.SetNestedField(webhook.(map[string]any), int64(port), "clientConfig", "service", "port"))
			}
			err = errors.Join(err, unstructured.SetNestedSlice(object.Object, webhooks, "webhooks"))
		case object.GetKind() == "ConfigMap" && len(configuration) > 0:
			for key := range b.configuration.Data {
				b.configuration.Data[key] = string(configuration)
				err = errors.Join(err, unstructured.SetNestedField(object.Object, string(configuration), "data", key))
			}
		}
		if err != nil {
			return fmt.Errorf("adapting %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// apply sends the objects to the API server, which refuses unknown fields, and
// checks that it would accept a pod of the Deployment: Pod Security, for one, is
// judged only then.
func (b *bundle) apply(ctx context.Context, c client.Client) error {
	for _, object := range b.objects {
		content, err := json.Marshal(object)
		if err != nil {
			return err
		}
		err = c.Patch(ctx, object.DeepCopy(), client.RawPatch(types.ApplyPatchType, content), client.ForceOwnership,
			&client.PatchOptions{FieldManager: fieldManager, Raw: &metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}})
		if err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if err := c.Create(ctx, b.pod("dry-run"), client.DryRunAll); err != nil {
		return fmt.Errorf("trying a pod of the Deployment: %w", err)
	}
	return nil
}

// pod is a pod of the Deployment.
func (b *bundle) pod(name string) *corev1.Pod {
	template := b.deployment.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = b.namespace(), name
	return pod
}

// waitCertificates waits until all certificates are Ready.
func (b *bundle) waitCertificates(ctx context.Context, c client.Client) error {
	for _, certificate := range b.certificates {
		err := eventually(ctx, c, certificate, func() error {
			for _, condition := range certificate.Status.Conditions {
				if condition.Type == certmanagerv1.CertificateConditionReady && condition.Status == certmanagermeta.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("not Ready: %+v", certificate.Status.Conditions)
		})
		if err != nil {
			return fmt.Errorf("waiting for Certificate %s: %w", certificate.Name, err)
		}
	}
	return nil
}

// waitCABundle waits until cainjector has told the API server the CA.
func (b *bundle) waitCABundle(ctx context.Context, c client.Client) error {
	webhook := b.webhook.DeepCopy()
	err := eventually(ctx, c, webhook, func() error {
		for _, each := range webhook.Webhooks {
			if len(each.ClientConfig.CABundle) == 0 {
				return errors.New("no caBundle")
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the CA in MutatingWebhookConfiguration %s: %w", webhook.Name, err)
	}
	return nil
}

// eventually reads the object until check returns nil.
func eventually(ctx context.Context, c client.Client, object client.Object, check func() error) error {
	key := client.ObjectKeyFromObject(object)
	var last error
	err := wait.PollUntilContextTimeout(ctx, waitInterval, waitTimeout, true, func(ctx context.Context) (bool, error) {
		if last = c.Get(ctx, key, object); last == nil {
			last = check()
		}
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}
