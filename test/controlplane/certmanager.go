package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

const certManagerModule = "github.com/cert-manager/cert-manager"

// certManager describes cert-manager's controllers and cainjector in one
// process, see test/certmanager.
func (cp *ControlPlane) certManager() (*Component, error) {
	port, err := cp.ports.reserve()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := cp.kubeconfigFor("cert-manager", administratorGroup)
	if err != nil {
		return nil, err
	}
	address := loopback(port)
	ready := func(ctx context.Context) error { return get(ctx, http.DefaultClient, "http://"+address+"/readyz") }
	return cp.component(CertManager, cp.options.Binaries.CertManager, ready,
		"--kubeconfig="+kubeconfig,
		"--health-probe-bind-address="+address,
		"--v="+cp.verbosity(CertManager),
	), nil
}

// installCertManagerCRDs creates the CRDs that lie in cert-manager's module and
// waits until they are served.
func (cp *ControlPlane) installCertManagerCRDs(ctx context.Context) error {
	dir, err := programs.ModuleDir(ctx, filepath.Join(cp.root, "test"), certManagerModule)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("installing cert-manager's CRDs: none in %s: %w", dir, err)
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		definition, err := cp.createCRD(ctx, file)
		if err != nil {
			return fmt.Errorf("installing %s: %w", filepath.Base(file), err)
		}
		definitions = append(definitions, definition)
	}
	for _, definition := range definitions {
		if err := cp.waitEstablished(ctx, definition); err != nil {
			return fmt.Errorf("waiting for CRD %s: %w", definition.Name, err)
		}
	}
	return nil
}

// createCRD creates the CRD in a file.
func (cp *ControlPlane) createCRD(ctx context.Context, file string) (*apiextensionsv1.CustomResourceDefinition, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(content, definition); err != nil {
		return nil, err
	}
	return definition, cp.client.Create(ctx, definition)
}

// waitEstablished waits until the API server serves the type.
func (cp *ControlPlane) waitEstablished(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if last = cp.client.Get(ctx, client.ObjectKeyFromObject(definition), definition); last != nil {
			return false, nil
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	return errors.Join(err, last)
}
