package chart

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
)

// helmTimeout is how long one operation of Helm may take.
const helmTimeout = 2 * time.Minute

// Helm runs Helm's operations on the release, with the settings of its command line.
type Helm struct{ configuration *action.Configuration }

// NewHelm returns Helm for the cluster of a kubeconfig file.
func NewHelm(kubeconfig string) (*Helm, error) {
	settings := cli.New()
	settings.KubeConfig = kubeconfig
	settings.SetNamespace(Namespace)
	configuration := action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler))
	if err := configuration.Init(settings.RESTClientGetter(), Namespace, ""); err != nil {
		return nil, fmt.Errorf("preparing Helm: %w", err)
	}
	return &Helm{configuration}, nil
}

// Install is `helm install --create-namespace --wait`.
func (h *Helm) Install(ctx context.Context, values map[string]any) (*release.Release, error) {
	loaded, err := Load()
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(h.configuration)
	install.ReleaseName, install.Namespace, install.CreateNamespace = ReleaseName, Namespace, true
	install.WaitStrategy, install.Timeout = kube.StatusWatcherStrategy, helmTimeout
	installed, err := install.RunWithContext(ctx, loaded, values)
	if err != nil {
		return nil, fmt.Errorf("helm install: %w", err)
	}
	return installed.(*release.Release), nil
}

// Upgrade is `helm upgrade --wait`. The values are all that differ from values.yaml.
func (h *Helm) Upgrade(ctx context.Context, values map[string]any) (*release.Release, error) {
	loaded, err := Load()
	if err != nil {
		return nil, err
	}
	upgrade := action.NewUpgrade(h.configuration)
	upgrade.Namespace, upgrade.ResetValues = Namespace, true
	upgrade.WaitStrategy, upgrade.Timeout = kube.StatusWatcherStrategy, helmTimeout
	upgraded, err := upgrade.RunWithContext(ctx, ReleaseName, loaded, values)
	if err != nil {
		return nil, fmt.Errorf("helm upgrade: %w", err)
	}
	return upgraded.(*release.Release), nil
}

// Test is `helm test`, without the logs.
func (h *Helm) Test() error {
	testing := action.NewReleaseTesting(h.configuration)
	testing.Namespace, testing.Timeout = Namespace, helmTimeout
	_, shutdown, err := testing.Run(ReleaseName)
	if err != nil {
		err = fmt.Errorf("helm test: %w", err)
	}
	if removed := shutdown(); removed != nil && err == nil {
		err = fmt.Errorf("helm test: %w", removed)
	}
	return err
}

// Uninstall is `helm uninstall --wait`.
func (h *Helm) Uninstall() error {
	uninstall := action.NewUninstall(h.configuration)
	uninstall.WaitStrategy, uninstall.Timeout = kube.StatusWatcherStrategy, helmTimeout
	if _, err := uninstall.Run(ReleaseName); err != nil {
		return fmt.Errorf("helm uninstall: %w", err)
	}
	return nil
}
