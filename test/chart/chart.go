package chart

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

const (
	// ReleaseName is the name of the release in tests, as in the chart's README.
	ReleaseName = "gpu-binpacker"
	// Namespace is where the release is installed.
	Namespace = config.SystemNamespace
)

// oldestKubernetes is the oldest version that the chart is for.
var oldestKubernetes = common.KubeVersion{Version: "v1.30.0", Major: "1", Minor: "30"}

// Dir returns the folder of the chart.
func Dir() (string, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "config", "helm", "gpu-binpacker"), nil
}

// Load reads the chart.
func Load() (*chartv2.Chart, error) {
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	return loader.Load(dir)
}

// Render renders the chart for a namespace as `helm template` does, without a
// cluster. The values override those of values.yaml; the error says which of them is
// wrong.
func Render(ctx context.Context, namespace string, values map[string]any) (*release.Release, error) {
	loaded, err := Load()
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(action.NewConfiguration(action.ConfigurationSetLogger(slog.DiscardHandler)))
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace = ReleaseName, namespace
	install.KubeVersion = &oldestKubernetes
	rendered, err := install.RunWithContext(ctx, loaded, values)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart: %w", err)
	}
	return rendered.(*release.Release), nil
}
