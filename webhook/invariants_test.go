package webhook

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	apiserverpatch "gopkg.in/evanphx/json-patch.v4" // the one that kube-apiserver applies patches with
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// What must hold for every answer, whatever the pod. The golden cases and the
// fuzz targets check it.

// allowedPaths are all paths that a patch may have.
var allowedPaths = regexp.MustCompile(`^(` +
	`/spec/affinity(/(nodeAffinity|podAffinity)(/preferredDuringSchedulingIgnoredDuringExecution(/(-|\d+))?)?)?` +
	`|/spec/topologySpreadConstraints(/\d+)?` +
	`|/metadata/annotations(/gpu-binpacker\.io~1(steering|target|admission|ranking))?` +
	`|/metadata/labels(/gpu-binpacker\.io~1late)?` +
	`)$`)

// checkResponse checks an answer and returns the pod with the patch applied.
func checkResponse(t testing.TB, raw []byte, uid types.UID, response admission.Response) []byte {
	t.Helper()
	if !response.Allowed || response.Result != nil {
		t.Fatalf("the pod was refused: %+v", response.AdmissionResponse)
	}
	if response.UID != uid {
		t.Errorf("response UID %q, want %q", response.UID, uid)
	}
	if len(response.Patches) > 0 || len(response.Warnings) > 0 || len(response.AuditAnnotations) > 0 {
		t.Errorf("response has more than a patch: %+v", response)
	}
	if (response.Patch == nil) != (response.PatchType == nil) {
		t.Errorf("patch %s with type %v", response.Patch, response.PatchType)
	}
	if response.Patch == nil {
		return raw
	}
	result := apply(t, raw, response.Patch)
	if decodesStrictly(raw) {
		if !decodesStrictly(result) {
			t.Errorf("the result is not a valid pod: %s", result)
		}
		checkUserParts(t, raw, result)
		checkOurParts(t, result, response.Patch)
	}
	return result
}

// apply applies the patch to the pod, with the library that kube-apiserver uses
// and with the one that we use; they must agree.
func apply(t testing.TB, raw, patch []byte) []byte {
	t.Helper()
	var ops []decodedOperation
	if err := json.Unmarshal(patch, &ops); err != nil || len(ops) == 0 {
		t.Fatalf("patch %s: %v", patch, err)
	}
	for _, op := range ops {
		if !allowedPaths.MatchString(op.Path) || op.Op != "add" && op.Op != "remove" {
			t.Errorf("operation %s of %s is not ours to make", op.Op, op.Path)
		}
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("patch %s: %v", patch, err)
	}
	result, err := decoded.Apply(raw)
	if err != nil {
		t.Fatalf("patch does not apply: %v\npatch %s\npod %s", err, patch, raw)
	}
	apiserverDecoded, err := apiserverpatch.DecodePatch(patch)
	if err != nil {
		t.Fatalf("patch %s: %v", patch, err)
	}
	apiserverResult, err := apiserverDecoded.Apply(raw)
	if err != nil {
		t.Fatalf("patch does not apply in kube-apiserver: %v\npatch %s\npod %s", err, patch, raw)
	}
	if !sameJSON(result, apiserverResult) {
		t.Fatalf("kube-apiserver gets another result:\nours %s\nits  %s", result, apiserverResult)
	}
	return result
}

// checkUserParts checks that everything that is not ours is where it was: lists
// in order and byte for byte, the rest by value.
func checkUserParts(t testing.TB, before, after []byte) {
	t.Helper()
	wantRest, wantElements := withoutOurs(t, before)
	gotRest, gotElements := withoutOurs(t, after)
	if diff := cmp.Diff(wantElements, gotElements); diff != "" {
		t.Errorf("the user's list elements changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(wantRest, gotRest); diff != "" {
		t.Errorf("the user's pod changed (-before +after):\n%s", diff)
	}
}

// withoutOurs returns a pod without our parts, and without empty containers on
// the way to them, as a generic value; and the elements of the lists we add to
// that are not ours, as text.
func withoutOurs(t testing.TB, raw []byte) (map[string]any, []string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var pod map[string]any
	if err := decoder.Decode(&pod); err != nil {
		t.Fatal(err)
	}
	preferred := "preferredDuringSchedulingIgnoredDuringExecution"
	elements := slices.Concat(
		userElements(t, raw, steering.IsTerm, "spec", "affinity", "nodeAffinity", preferred),
		userElements(t, raw, steering.IsLateTerm, "spec", "affinity", "podAffinity", preferred),
		userElements(t, raw, steering.IsConstraint, "spec", "topologySpreadConstraints"),
	)
	for _, key := range []string{"steering", "target", "admission", "ranking"} {
		deleteAt(pod, "metadata", "annotations", config.Domain+"/"+key)
	}
	deleteAt(pod, "metadata", "annotations")
	deleteAt(pod, "metadata", "labels", config.LabelLate)
	deleteAt(pod, "metadata", "labels")
	for _, kind := range []string{"nodeAffinity", "podAffinity"} {
		drop(pod, "spec", "affinity", kind, preferred) // compared as elements
		deleteAt(pod, "spec", "affinity", kind)
	}
	deleteAt(pod, "spec", "affinity")
	drop(pod, "spec", "topologySpreadConstraints")
	return pod, elements
}

// deleteAt removes a key if its value is ours (a string) or empty.
func deleteAt(object map[string]any, path ...string) {
	parent := parentOf(object, path)
	switch value := parent[path[len(path)-1]].(type) {
	case map[string]any:
		if len(value) > 0 {
			return
		}
	case []any, json.Number, bool:
		return
	}
	delete(parent, path[len(path)-1])
}

// drop removes a key whatever its value.
func drop(object map[string]any, path ...string) {
	delete(parentOf(object, path), path[len(path)-1])
}

func parentOf(object map[string]any, path []string) map[string]any {
	for _, key := range path[:len(path)-1] {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// userElements returns the elements of a list that are not ours, as compact text.
func userElements[T any](t testing.TB, raw []byte, isOurs func(*T) bool, path ...string) []string {
	t.Helper()
	value := json.RawMessage(raw)
	for _, key := range path {
		var object map[string]json.RawMessage
		if len(value) == 0 || json.Unmarshal(value, &object) != nil {
			return nil
		}
		value = object[key]
	}
	var list []json.RawMessage
	if len(value) == 0 || json.Unmarshal(value, &list) != nil {
		return nil
	}
	var out []string
	for _, element := range list {
		var typed T
		if err := kjson.UnmarshalCaseSensitivePreserveInts(element, &typed); err != nil {
			t.Fatal(err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, element); err != nil {
			t.Fatal(err)
		}
		if !isOurs(&typed) {
			out = append(out, compact.String())
		}
	}
	return out
}

// checkOurParts checks what the patch added against the API's rules and ours.
func checkOurParts(t testing.TB, result, patch []byte) {
	t.Helper()
	pod := &corev1.Pod{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(result, pod); err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(patch, []byte(`"add","path":"/spec/affinity/nodeAffinity`)) {
		checkTerms(t, pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
		if target := pod.Annotations[config.AnnotationTarget]; len(validation.IsDNS1123Subdomain(target)) > 0 {
			t.Errorf("target %q is no node name", target)
		}
	}
	if bytes.Contains(patch, []byte(`"add","path":"/spec/topologySpreadConstraints`)) && len(pod.Spec.TopologySpreadConstraints) != 1 {
		t.Errorf("constraints %+v, want only ours", pod.Spec.TopologySpreadConstraints)
	}
	late := 0
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAffinity != nil {
		for i := range affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			if steering.IsLateTerm(&affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i]) {
				late++
			}
		}
	}
	if late > 1 {
		t.Errorf("%d late terms", late)
	}
}

// checkTerms checks that our terms come last, list distinct nodes by weight, and
// satisfy API validation.
func checkTerms(t testing.TB, all []corev1.PreferredSchedulingTerm) {
	t.Helper()
	var ours []int
	for i := range all {
		if steering.IsTerm(&all[i]) {
			ours = append(ours, i)
		}
	}
	weight := int32(100)
	seen := map[string]bool{}
	for i, at := range ours {
		if at != len(all)-len(ours)+i {
			t.Errorf("our terms are at %v of %d, not at the end", ours, len(all))
		}
		name := all[at].Preference.MatchFields[0].Values[0]
		if all[at].Weight < 1 || all[at].Weight > weight {
			t.Errorf("term %d has weight %d after %d", i, all[at].Weight, weight)
		}
		if len(validation.IsDNS1123Subdomain(name)) > 0 || seen[name] {
			t.Errorf("term %d names %q, which is no node name or was listed before", i, name)
		}
		weight, seen[name] = all[at].Weight, true
	}
}

// checkHandledAgain checks that handling the result once more, under a new
// request UID, leaves it as it is: byte for byte while the pod's own reservation
// is in place, as on a reinvocation. Later it may be taken for a copy of the pod,
// which changes its admission UID and nothing else.
func checkHandledAgain(t testing.TB, bed *testBed, request admission.Request, result []byte) {
	t.Helper()
	known := bed.ix.Size().Reservations > 0
	for _, uid := range []types.UID{"0f5c5d2e-8d9b-4b7c-9a51-000000000002", "0f5c5d2e-8d9b-4b7c-9a51-000000000003"} {
		request.UID, request.Object.Raw = uid, result
		again := bed.Handle(t.Context(), request)
		after := checkResponse(t, result, uid, again)
		same := again.Patch == nil && bytes.Equal(result, after)
		if !same && (known || !sameJSON(withAdmission(t, result, uid), after)) {
			t.Errorf("handling the result again changes it:\npatch %s\nbefore %s\nafter  %s", again.Patch, result, after)
		}
		result = after
		bed.clock = bed.clock.Add(bed.cfg.InFlight.ReservationTTL.Duration)
		known = false
	}
}

// withAdmission returns the pod with that admission annotation, if it has one.
func withAdmission(t testing.TB, raw []byte, uid types.UID) []byte {
	t.Helper()
	if pod := (&corev1.Pod{}); json.Unmarshal(raw, pod) != nil || pod.Annotations[config.AnnotationAdmission] == "" {
		return raw
	}
	return apply(t, raw, []byte(`[{"op":"add","path":"/metadata/annotations/gpu-binpacker.io~1admission","value":"`+string(uid)+`"}]`))
}

// decodesStrictly tells whether the text is a pod without unknown or repeated
// fields.
func decodesStrictly(raw []byte) bool {
	unknown, err := kjson.UnmarshalStrict(raw, &corev1.Pod{})
	return err == nil && len(unknown) == 0
}

// decodedOperation is an operation of a patch as the API server reads it.
type decodedOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}
