package chart

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// passing are resources whose objects come and go by themselves.
var passing = []string{"events", "leases", "componentstatuses"}

// inventory lists every object in the cluster as "resource namespace/name", sorted,
// whatever its kind.
func inventory(ctx context.Context, cp *controlplane.ControlPlane) ([]string, error) {
	groups, err := cp.Clientset().Discovery().ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("listing the API's resources: %w", err)
	}
	quiet := cp.RESTConfig()
	quiet.WarningHandler = rest.NoWarnings{} // deprecated kinds are listed as well
	reader, err := metadata.NewForConfig(quiet)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, group := range groups {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range group.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(passing, resource.Name) {
				continue
			}
			objects, err := reader.Resource(version.WithResource(resource.Name)).List(ctx, metav1.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("listing %s: %w", resource.Name, err)
			}
			for i := range objects.Items {
				all = append(all, resource.Name+" "+objects.Items[i].Namespace+"/"+objects.Items[i].Name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
