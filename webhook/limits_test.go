package webhook

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	kjson "sigs.k8s.io/json"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// podWith is gpuPod with more in it: annotations, and elements of the list of
// preferred terms.
func podWith(annotations, terms string) []byte {
	return []byte(`{"metadata":{"name":"p","annotations":{` + annotations + `}},"spec":{"affinity":{"nodeAffinity":` +
		`{"preferredDuringSchedulingIgnoredDuringExecution":[` + terms + `]}},` + gpuPod[len(`{"metadata":{"name":"p"},"spec":{`):])
}

const ownTerm = `{"weight":1,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":["g1"]}]}}`

// Pods of a size that no user needs are left alone before they cost anything.
func TestHandleLargePods(t *testing.T) {
	tests := map[string]struct {
		raw  []byte
		want steering.Reason
	}{
		"as large as allowed":  {[]byte(gpuPod + strings.Repeat(" ", maxPodBytes-len(gpuPod))), steering.ReasonNone},
		"too large":            {[]byte(gpuPod + strings.Repeat(" ", maxPodBytes-len(gpuPod)+1)), steering.ReasonTooLarge},
		"many parts like ours": {podWith("", ownTerm+strings.Repeat(","+ownTerm, maxOwnParts-1)), steering.ReasonNone},
		"too many":             {podWith("", ownTerm+strings.Repeat(","+ownTerm, maxOwnParts)), steering.ReasonTooLarge},
		"thousands":            {podWith("", ownTerm+strings.Repeat(","+ownTerm, 5000)), steering.ReasonTooLarge},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bed := newBed(t, config.Default(), []string{"team-a"}, goldenCluster(t, "mixed")...)
			request := podCreate(tc.raw)
			result := checkResponse(t, tc.raw, request.UID, bed.Handle(t.Context(), request))
			if _, reason := bed.onlyDecision(t); reason != string(tc.want) {
				t.Errorf("reason %q, want %q", reason, tc.want)
			}
			if tc.want != steering.ReasonNone && len(result) != len(tc.raw) {
				t.Error("the pod was changed")
			}
		})
	}
}

// The API server refuses a pod whose annotations are too large together. The
// ranking, which is only information, gives way; if the rest does not fit either,
// the pod stays as it is.
func TestHandleFitsAnnotations(t *testing.T) {
	// "a": the user's text; its length counts with the key's.
	user := func(length int) string { return `"a":"` + strings.Repeat("x", length-1) + `"` }
	// What the annotations without the ranking take: keys and values.
	ours := 0
	for key, value := range map[string]string{
		config.AnnotationSteering: config.SteeringRanked, config.AnnotationTarget: "g1", config.AnnotationAdmission: string(firstUID),
	} {
		ours += len(key) + len(value)
	}
	const limit = apivalidation.TotalAnnotationSizeLimitB
	tests := map[string]struct {
		user        int
		wantReason  steering.Reason
		wantRanking bool
	}{
		"all fit":                  {limit / 2, steering.ReasonNone, true},
		"all but the ranking fit":  {limit - ours, steering.ReasonNone, false},
		"not even the rest":        {limit - ours + 1, steering.ReasonTooLarge, false},
		"the user's are too large": {limit + 1, steering.ReasonTooLarge, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bed := newBed(t, config.Default(), []string{"team-a"}, goldenCluster(t, "mixed")...)
			raw := podWith(user(tc.user), "")
			request := podCreate(raw)
			result := checkResponse(t, raw, request.UID, bed.Handle(t.Context(), request))
			if _, reason := bed.onlyDecision(t); reason != string(tc.wantReason) {
				t.Errorf("reason %q, want %q", reason, tc.wantReason)
			}
			pod := &corev1.Pod{}
			if err := kjson.UnmarshalCaseSensitivePreserveInts(result, pod); err != nil {
				t.Fatal(err)
			}
			if _, ok := pod.Annotations[config.AnnotationRanking]; ok != tc.wantRanking {
				t.Errorf("ranking: %v, want %v", ok, tc.wantRanking)
			}
			if tc.wantReason == steering.ReasonNone {
				if err := apivalidation.ValidateAnnotationsSize(pod.Annotations); err != nil {
					t.Error(err)
				}
				checkHandledAgain(t, bed, request, result)
			} else if !sameJSON(raw, result) {
				t.Error("the pod was changed")
			}
		})
	}
}
