package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// How the installation is found in a cluster; package test/packaging checks that
// the manifests agree.
const (
	// nameLabel selects the Deployment.
	nameLabel = "app.kubernetes.io/name=gpu-binpacker"
	// configurationVolume is the volume of the Deployment's pods that holds the
	// ConfigMap, and configurationKey the configuration in it.
	configurationVolume = "configuration"
	configurationKey    = "configuration.yaml"
)

// configurationFlag says which configuration a command goes by.
type configurationFlag struct{ path string }

func (f *configurationFlag) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.path, "config", "", "configuration file; that of the installation in the cluster when not given, else the defaults")
}

// load returns the configuration of the file, else of the installation that the
// clients reach, else the default one. clients is nil when there is no cluster.
// notes gets a line where a guess was made.
func (f *configurationFlag) load(ctx context.Context, clients kubernetes.Interface, notes io.Writer) (config.Configuration, error) {
	if f.path != "" || clients == nil {
		return config.Load(f.path, nil)
	}
	cfg, err := installedConfiguration(ctx, clients)
	switch {
	case apierrors.IsNotFound(err):
		fmt.Fprintln(notes, "gpu-binpacker is not installed in this cluster: going by its default configuration")
		return config.Default(), nil
	case apierrors.IsForbidden(err):
		fmt.Fprintf(notes, "going by the default configuration, since that of the installation cannot be read: %v\n", err)
		return config.Default(), nil
	}
	return cfg, err
}

// installedConfiguration reads the configuration of the installation. The error is
// a NotFound of the API when there is none.
func installedConfiguration(ctx context.Context, clients kubernetes.Interface) (config.Configuration, error) {
	deployment, err := installedDeployment(ctx, clients)
	if err != nil {
		return config.Configuration{}, err
	}
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Name != configurationVolume || volume.ConfigMap == nil {
			continue
		}
		configMap, err := clients.CoreV1().ConfigMaps(deployment.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return config.Configuration{}, fmt.Errorf("reading the installed configuration: %w", err)
		}
		name := fmt.Sprintf("ConfigMap %s/%s", configMap.Namespace, configMap.Name)
		cfg, err := config.Parse([]byte(configMap.Data[configurationKey]))
		if err != nil {
			return config.Configuration{}, fmt.Errorf("%s: %s: %w", name, configurationKey, err)
		}
		if errs := config.Validate(cfg); len(errs) > 0 {
			return config.Configuration{}, fmt.Errorf("%s: %s: %w", name, configurationKey, errs.ToAggregate())
		}
		return cfg, nil
	}
	return config.Configuration{}, fmt.Errorf("the Deployment %s/%s has no volume %q with a ConfigMap; give --config",
		deployment.Namespace, deployment.Name, configurationVolume)
}

// installedDeployment finds the Deployment in the namespace that the webhook's
// configuration points to. The error is a NotFound of the API when there is none.
func installedDeployment(ctx context.Context, clients kubernetes.Interface) (*appsv1.Deployment, error) {
	hook, err := clients.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, config.WebhookConfigurationName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("looking for the installation: %w", err)
	}
	namespace := config.SystemNamespace
	for i := range hook.Webhooks {
		if service := hook.Webhooks[i].ClientConfig.Service; service != nil {
			namespace = service.Namespace
		}
	}
	list, err := clients.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: nameLabel})
	if err != nil {
		return nil, fmt.Errorf("looking for the Deployment: %w", err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("looking for the Deployment: %w",
			apierrors.NewNotFound(appsv1.Resource("deployments"), namespace+" with label "+nameLabel))
	}
	return &list.Items[0], nil
}
