package chart

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/test/kustomize"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// values are what a user gives to Helm.
type values = map[string]any

// objects are rendered manifests, "Kind/name" -> object.
type objects map[string]*unstructured.Unstructured

// names are the keys, sorted.
func (o objects) names() []string { return slices.Sorted(maps.Keys(o)) }

// decode reads a stream of manifests.
func decode(t *testing.T, stream string) objects {
	t.Helper()
	all := objects{}
	for _, document := range strings.Split("\n"+stream, "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("decoding: %v\n%s", err, document)
		}
		if len(object.Object) == 0 {
			continue
		}
		key := object.GetKind() + "/" + object.GetName()
		if all[key] != nil {
			t.Fatalf("two objects %s", key)
		}
		all[key] = object
	}
	return all
}

// render returns the chart's release, without a cluster.
func render(t *testing.T, given values) *release.Release {
	t.Helper()
	rendered, err := Render(t.Context(), Namespace, given)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// charted returns the chart's objects.
func charted(t *testing.T, given values) objects {
	t.Helper()
	return decode(t, render(t, given).Manifest)
}

// hooks returns the objects that `helm test` makes.
func hooks(t *testing.T, given values) objects {
	t.Helper()
	var manifests []string
	for _, hook := range render(t, given).Hooks {
		if !slices.Equal(hook.Events, []release.HookEvent{release.HookTest}) {
			t.Errorf("hook %s runs on %v, want test alone", hook.Path, hook.Events)
		}
		manifests = append(manifests, hook.Manifest)
	}
	return decode(t, strings.Join(manifests, "\n---\n"))
}

// kustomized returns the objects of a folder of config/, as kustomize
// renders it.
func kustomized(t *testing.T, folder string) objects {
	t.Helper()
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := kustomize.Build(filepath.Join(root, "config", folder))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, string(rendered))
}

// typed returns an object as its Go type and fails on fields that it does not have.
func typed[T any](t *testing.T, from objects, key string) *T {
	t.Helper()
	object := from[key]
	if object == nil {
		t.Fatalf("no %s in %v", key, from.names())
	}
	result := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, result, true); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return result
}

// set returns the value at a path, with dots between the keys, in maps of its own.
func set(path string, value any) values {
	keys := strings.Split(path, ".")
	for _, key := range slices.Backward(keys) {
		value = values{key: value}
	}
	return value.(values)
}
