// Package kustomize renders kustomizations as `kustomize build` does, with the
// library that kubectl has built in. Nothing has to be installed or compiled for it
// beside the test bed itself.
package kustomize

import (
	"fmt"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Build returns the objects of a folder with a kustomization.yaml, as a stream of YAML
// documents. Like `kustomize build` without flags, it reads no file outside the folder,
// but follows other folders that are named there.
func Build(folder string) ([]byte, error) {
	options := krusty.MakeDefaultOptions()
	// The order is what the kustomization asks for in its sortOptions.
	options.Reorder = krusty.ReorderOptionUnspecified
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", folder, err)
	}
	rendered, err := resources.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("writing what was rendered from %s: %w", folder, err)
	}
	return rendered, nil
}
