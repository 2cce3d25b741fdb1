package validation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// golden is what counts here of a file in webhook/testdata/golden.
type golden struct {
	Pod   json.RawMessage   `json:"pod"`
	Raw   string            `json:"raw"`
	Patch []json.RawMessage `json:"patch"`
}

// The patches of the corpus leave valid pods valid, and so does whatever the
// webhook answers to these pods on other clusters and in other modes.
func TestGoldenPods(t *testing.T) {
	beds := newBeds(t)
	for name, raw := range goldenPods(t) {
		t.Run(name, func(t *testing.T) {
			if raw.patch != nil {
				checkGoldenPatch(t, raw)
			}
			for _, b := range beds {
				checkPod(t, b, raw.pod, false)
			}
		})
	}
}

func checkGoldenPatch(t *testing.T, c goldenPod) {
	t.Helper()
	patched, err := apply(c.pod, c.patch)
	if err != nil {
		t.Fatalf("patch does not apply: %v", err)
	}
	// A pod of the corpus may be of any namespace.
	pod, err := decode(c.pod)
	if err != nil {
		t.Fatalf("patched, but not decodable: %v", err)
	}
	namespace := pod.Namespace
	if namespace == "" {
		namespace = team
	}
	if _, err := create(c.pod, namespace); err != nil {
		t.Logf("not valid without us: %v", err)
		return
	}
	if _, err := create(patched, namespace); err != nil {
		t.Errorf("refused because of us: %v", err)
	}
}

// goldenPod is a pod of the corpus and the patch it gets there, nil for none.
type goldenPod struct{ pod, patch []byte }

func goldenPods(t testing.TB) map[string]goldenPod {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(corpus, "golden", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	pods := map[string]goldenPod{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var g golden
		if err := yaml.Unmarshal(data, &g); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		p := goldenPod{pod: g.Pod}
		if g.Pod == nil {
			p.pod = []byte(g.Raw)
		}
		if len(g.Patch) > 0 {
			if p.patch, err = json.Marshal(g.Patch); err != nil {
				t.Fatal(err)
			}
		}
		pods[strings.TrimSuffix(filepath.Base(path), ".yaml")] = p
	}
	return pods
}
