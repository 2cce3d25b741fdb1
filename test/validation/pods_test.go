package validation

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// FuzzPods makes pods from bytes. Whatever the pod, every patch applies, and a pod
// that the API server takes without the patch is taken with it.
func FuzzPods(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 200 {
		f.Add(byte(i), randomBytes(random))
	}
	beds := newBeds(f)
	f.Fuzz(func(t *testing.T, choice byte, data []byte) {
		b := beds[int(choice)%len(beds)]
		checkPod(t, b, newGenerator(data).pod(), choice >= 128)
		b.checkNoFailure(t)
	})
}

// The same for some thousand pods, always the same ones, in every run of the
// tests.
func TestRandomPods(t *testing.T) {
	beds := newBeds(t)
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for i := range 3000 {
		raw := newGenerator(randomBytes(random)).pod()
		b := beds[i%len(beds)]
		seen[checkPod(t, b, raw, i%7 == 0)]++
		b.checkNoFailure(t)
		if t.Failed() {
			t.Fatalf("with pod %s", raw)
		}
	}
	// The test is worth something only if valid pods of all kinds come up.
	for _, want := range []string{"invalid", "valid, " + config.SteeringRanked, "valid, " + config.SteeringLate, "valid, " + config.SteeringDryRun, "valid, no patch"} {
		if seen[want] < 150 {
			t.Errorf("%d pods %s of %v", seen[want], want, seen)
		}
	}
}

func randomBytes(random *rand.Rand) []byte {
	data := make([]byte, 40+random.IntN(200))
	for i := range data {
		data[i] = byte(random.UintN(256))
	}
	return data
}

// checkPod sends the pod to the webhook as it is, and as the API server would
// send it, and returns what came of it the first time.
func checkPod(t testing.TB, b *bed, raw []byte, dryRun bool) string {
	t.Helper()
	b.clock = b.clock.Add(time.Hour) // no reservation of the pod before
	kind := checkPatched(t, b, raw, dryRun)
	if sent, err := received(raw, team); err == nil {
		b.clock = b.clock.Add(time.Hour)
		kind = checkPatched(t, b, sent, dryRun)
	}
	return kind
}

// checkPatched compares what the API server says of the pod without and with our
// patch, and once more after a reinvocation.
func checkPatched(t testing.TB, b *bed, raw []byte, dryRun bool) string {
	t.Helper()
	before, err := create(raw, team)
	patched, changed := b.handle(t, raw, "0f5c5d2e-8d9b-4b7c-9a51-000000000001", dryRun)
	again, _ := b.handle(t, patched, "0f5c5d2e-8d9b-4b7c-9a51-000000000002", dryRun)
	if err != nil {
		return "invalid"
	}
	want, kind := standingOf(t, before), "valid, no patch"
	for _, result := range [][]byte{patched, again} {
		after, err := create(result, team)
		if err != nil {
			t.Fatalf("refused because of us: %v\nbefore %s\nafter  %s", err, raw, result)
		}
		if changed {
			kind = "valid, " + after.Annotations[config.AnnotationSteering]
		}
		got := standingOf(t, after)
		got.Scopes = b.withoutAllowed(want.Scopes, got.Scopes)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("quota or Pod Security see another pod (-before +after):\n%s", diff)
		}
	}
	return kind
}

// withoutAllowed returns the scopes after the patch but for one change: a late term
// of scope Cluster reaches across namespaces, so a copy may stop to do so when it
// loses a stale one, and where that scope is configured a pod may begin to.
func (b *bed) withoutAllowed(before, after []corev1.ResourceQuotaScope) []corev1.ResourceQuotaScope {
	crosses := func(s corev1.ResourceQuotaScope) bool {
		return s == corev1.ResourceQuotaScopeCrossNamespacePodAffinity
	}
	did, does := slices.ContainsFunc(before, crosses), slices.ContainsFunc(after, crosses)
	if does == did || does && !b.mayCross {
		return after
	}
	after = slices.DeleteFunc(slices.Clone(after), crosses)
	if did {
		after = append(after, corev1.ResourceQuotaScopeCrossNamespacePodAffinity)
		slices.Sort(after)
	}
	return after
}
