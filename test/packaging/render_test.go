package packaging

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/kustomize"
)

// root is the repository's root, seen from this package.
var root = filepath.Join("..", "..")

// objects are decoded manifests.
type objects []client.Object

// names returns "Kind/name" of every object.
func (o objects) names() []string {
	names := make([]string, len(o))
	for i, object := range o {
		names[i] = object.GetObjectKind().GroupVersionKind().Kind + "/" + object.GetName()
	}
	return names
}

// find returns the only object of type T with the given name.
func find[T client.Object](t *testing.T, in objects, name string) T {
	t.Helper()
	var found []T
	for _, object := range in {
		if typed, ok := object.(T); ok && typed.GetName() == name {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects %T named %s, want 1 in %v", len(found), *new(T), name, in.names())
	}
	return found[0]
}

// installation returns the objects of config/default.
func installation(t *testing.T) objects {
	t.Helper()
	return decode(t, render(t, "default"))
}

// renderings are kept, since each costs about a second.
var renderings sync.Map // folder below config/ -> string

// render returns the objects of a folder of config/.
func render(t *testing.T, folder string) string {
	t.Helper()
	if rendered, ok := renderings.Load(folder); ok {
		return rendered.(string)
	}
	rendered := build(t, filepath.Join(root, "config", folder))
	renderings.Store(folder, rendered)
	return rendered
}

// build renders the kustomization in a folder.
func build(t *testing.T, folder string) string {
	t.Helper()
	rendered, err := kustomize.Build(folder)
	if err != nil {
		t.Fatal(err)
	}
	return string(rendered)
}

// goCommand runs the go command in a folder and returns what it prints.
func goCommand(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = folder
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running %s in %s: %v: %s", strings.Join(cmd.Args, " "), folder, err, stderr.String())
	}
	return string(out)
}

// decode decodes every document of a stream and fails on the first that is not
// exactly an object of a known kind.
func decode(t *testing.T, stream string) objects {
	t.Helper()
	decoded, err := decodeStrictly(stream)
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// decodeStrictly is what makes a misspelt field a failure: unknown fields (also
// those that differ in case only), repeated fields and unknown kinds are errors.
func decodeStrictly(stream string) (objects, error) {
	decoder := serializer.NewCodecFactory(knownKinds(), serializer.EnableStrict).UniversalDeserializer()
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(stream)))
	var decoded objects
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return decoded, nil
		}
		if err != nil {
			return nil, fmt.Errorf("splitting manifests: %w", err)
		}
		object, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("decoding a document of kind %v: %w\n%s", kind, err, document)
		}
		decoded = append(decoded, object.(client.Object))
	}
}

// knownKinds are the kinds that may occur in our manifests.
func knownKinds() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, certmanagerv1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	monitoring := schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	scheme.AddKnownTypeWithName(monitoring.WithKind("ServiceMonitor"), &serviceMonitor{})
	scheme.AddKnownTypeWithName(monitoring.WithKind("PrometheusRule"), &prometheusRule{})
	return scheme
}

// environment returns the value of a container's environment variable.
func environment(container corev1.Container, name string) string {
	for _, variable := range container.Env {
		if variable.Name == name {
			return variable.Value
		}
	}
	return ""
}
