package validation

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
)

// team is the namespace that has opted in.
const team = "team-a"

// corpus is where package webhook keeps its cases.
var corpus = filepath.Join("..", "..", "webhook", "testdata")

// bed is a real handler on a synced index.
type bed struct {
	*webhook.Handler
	clock time.Time
	// mayCross: it may add pod affinity across namespaces, a scope of quotas.
	mayCross bool
	// failures are its log lines: at level 0 it logs nothing else.
	mu       sync.Mutex
	failures []string
}

// handlerMetrics is shared, since a registry takes each metric once.
var handlerMetrics = metrics.New(ctrlmetrics.Registry)

// newBeds returns clusters and configurations under which all kinds of patches
// come up.
func newBeds(t testing.TB) []*bed {
	t.Helper()
	var beds []*bed
	for _, cluster := range []string{"mixed", "full"} {
		for _, change := range []func(*config.Configuration){
			func(*config.Configuration) {},
			func(c *config.Configuration) { c.Mode = config.ModeDryRun },
			func(c *config.Configuration) {
				c.LateSteering.Mode = config.LateAlways
				c.Spreading.UserConstraints = config.UserConstraintsIgnore
			},
			func(c *config.Configuration) {
				c.LateSteering.Mode, c.Weights.Weighting = config.LateOff, config.WeightingEqual
				c.Annotations = config.AnnotationsTarget
			},
			func(c *config.Configuration) { c.LateSteering.Scope = config.LateScopeCluster },
		} {
			cfg := config.Default()
			change(&cfg)
			beds = append(beds, newBed(t, cfg, cluster))
		}
	}
	return beds
}

func newBed(t testing.TB, cfg config.Configuration, cluster string) *bed {
	t.Helper()
	if errs := config.Validate(cfg); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	// A busy machine must not change what comes of a pod.
	cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Minute}
	b := &bed{clock: start.Time, mayCross: cfg.LateSteering.Scope == config.LateScopeCluster}
	ix, err := index.New(cfg, func() time.Time { return b.clock })
	if err != nil {
		t.Fatal(err)
	}
	ix.SetNamespace(team, true)
	fill(t, ix, cluster)
	ix.SetSynced()
	b.Handler = webhook.NewHandler(cfg, scoring.NewScorer(cfg, ix), handlerMetrics, b.logger())
	return b
}

func (b *bed) logger() logr.Logger {
	return funcr.New(func(_, line string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.failures = append(b.failures, line)
	}, funcr.Options{})
}

// checkNoFailure checks that no decision ended in a failure of ours: the pod would
// have been admitted, but it is a bug.
func (b *bed) checkNoFailure(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.failures) > 0 {
		t.Errorf("failures in the log: %s", b.failures)
		b.failures = nil
	}
}

// fill puts the nodes and pods of a cluster of the corpus into the index.
func fill(t testing.TB, ix *index.Index, cluster string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(corpus, "clusters", cluster+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var objects struct {
		Nodes []corev1.Node `json:"nodes"`
		Pods  []corev1.Pod  `json:"pods"`
	}
	if err := yaml.UnmarshalStrict(data, &objects); err != nil {
		t.Fatal(err)
	}
	for i := range objects.Nodes {
		ix.SetNode(&objects.Nodes[i])
	}
	for i := range objects.Pods {
		pod := &objects.Pods[i]
		pod.UID = types.UID(pod.Namespace + "/" + pod.Name)
		ix.SetPod(pod)
	}
}

// handle sends a pod to the webhook and returns the pod with the answer's patch
// applied, and whether there was one.
func (b *bed) handle(t testing.TB, raw []byte, uid types.UID, dryRun bool) (patched []byte, changed bool) {
	t.Helper()
	response := b.Handle(t.Context(), admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID:       uid,
		Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Namespace: team,
		Operation: admissionv1.Create,
		Object:    runtime.RawExtension{Raw: raw},
		DryRun:    &dryRun,
	}})
	if !response.Allowed || response.Result != nil {
		t.Fatalf("the pod was refused: %+v", response.AdmissionResponse)
	}
	if response.Patch == nil {
		return raw, false
	}
	patched, err := apply(raw, response.Patch)
	if err != nil {
		t.Fatalf("patch does not apply: %v\npatch %s\npod %s", err, response.Patch, raw)
	}
	return patched, true
}
