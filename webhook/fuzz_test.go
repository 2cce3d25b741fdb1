package webhook

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/reviewtest"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

// The seeds of both targets are the golden cases: a new case is a new seed.

// FuzzHTTPBody posts arbitrary bytes. Whatever they are, the answer is a failed
// call or an allowing review whose patch applies.
func FuzzHTTPBody(f *testing.F) {
	cases := goldenCases(f)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		request := cases[name].request()
		if !json.Valid(request.Object.Raw) {
			request.Object.Raw = nil
		}
		body, err := json.Marshal(admissionReview(request))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	for _, body := range []string{"", "{", "null", "[]", reviewtest.Review(gpuPod) + "x", reviewtest.Review(`"\ud800"`), `{"request":{"uid":"u"}}`,
		strings.Replace(reviewtest.Review(gpuPod), "v1", "v1beta1", 1), reviewtest.ReplaceUID(reviewtest.Review(gpuPod), `\u0000`)} {
		f.Add([]byte(body))
	}
	for _, pod := range attackersPods() {
		f.Add([]byte(reviewtest.Review(pod)))
	}
	f.Add([]byte(reviewtest.ReplaceUID(reviewtest.Review(gpuPod), strings.Repeat("u", 1000))))
	f.Add([]byte(strings.Replace(reviewtest.Review(gpuPod), "team-a", strings.Repeat("n", 1000), 1)))
	bed := newBed(f, config.Default(), []string{"team-a"}, goldenCluster(f, "mixed")...)
	reviews := server.New(bed.Handler, bed.requests, bed.log.Logger(), 1, time.Minute)
	f.Fuzz(func(t *testing.T, body []byte) {
		bed.forget()
		recorder := httptest.NewRecorder()
		reviews.ServeHTTP(recorder, reviewtest.Post(t, string(body)))
		var sent admissionv1.AdmissionReview
		err := kjson.UnmarshalCaseSensitivePreserveInts(body, &sent)
		if err != nil || sent.Request == nil || sent.Request.UID == "" || sent.Kind != "AdmissionReview" || sent.APIVersion != "admission.k8s.io/v1" {
			if recorder.Code < 400 || bytes.Contains(recorder.Body.Bytes(), []byte("allowed")) {
				t.Fatalf("status %d for a body that is no review: %s", recorder.Code, recorder.Body)
			}
			return
		}
		answer := reviewtest.CheckAnswer(t, recorder, string(sent.Request.UID))
		if answer == nil {
			return
		}
		result := checkResponse(t, sent.Request.Object.Raw, sent.Request.UID, admission.Response{AdmissionResponse: *answer.Response})
		// A UID of the API server is a UUID; by a longer one we know no pod again.
		if answer.Response.Patch != nil && decodesStrictly(sent.Request.Object.Raw) && len(sent.Request.UID) <= len(firstUID) {
			checkHandledAgain(t, bed, admission.Request{AdmissionRequest: *sent.Request}, result)
		}
		bed.checkNoFailure(t, "panic")
	})
}

// attackersPods are pods that are small and cost much, or are more of something than any
// limit allows.
func attackersPods() []string {
	// times is a list of so many elements, each with its number.
	times := func(count int, element string) string {
		list := make([]string, count)
		for i := range list {
			list[i] = strings.ReplaceAll(element, "#", strconv.Itoa(i))
		}
		return strings.Join(list, ",")
	}
	inSpec := func(fields string) string {
		return strings.Replace(gpuPod, `"spec":{`, `"spec":{`+fields+`,`, 1)
	}
	inMetadata := func(fields string) string {
		return strings.Replace(gpuPod, `"metadata":{`, `"metadata":{`+fields+`,`, 1)
	}
	affinity := func(fields string) string { return inSpec(`"affinity":{"nodeAffinity":{` + fields + `}}`) }
	preferred := func(terms string) string {
		return affinity(`"preferredDuringSchedulingIgnoredDuringExecution":[` + terms + `]`)
	}
	required := func(terms string) string {
		return affinity(`"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + terms + `]}`)
	}
	return []string{
		inSpec(`"volumes":[` + times(5000, "{}") + `]`),
		inSpec(`"initContainers":[` + times(300, `{"name":"#"}`) + `]`),
		inSpec(`"overhead":{` + times(100, `"example.com/r#":"1"`) + `}`),
		inSpec(`"resources":{"limits":{` + times(100, `"nvidia.com/mig-#":"1"`) + `}}`),
		inSpec(`"tolerations":[` + times(201, `{"key":"k#","operator":"Exists"}`) + `]`),
		inSpec(`"nodeSelector":{` + times(201, `"k#":"v"`) + `}`),
		required(times(1, `{"matchFields":[{"key":"metadata.name","operator":"In","values":[`+times(4000, `"n#"`)+`]}]}`)),
		required(times(201, `{}`)),
		preferred(times(201, `{"weight":1,"preference":{"matchExpressions":[{"key":"k#","operator":"DoesNotExist"}]}}`)),
		preferred(times(maxOwnParts+1, `{"weight":1,"preference":{"matchFields":[{"key":"metadata.name","operator":"In","values":["n#"]}]}}`)),
		inMetadata(`"annotations":{"` + config.AnnotationSteering + `":"` + strings.Repeat("x", 5000) + `"}`),
		inMetadata(`"annotations":{"` + config.AnnotationTarget + `":"` + strings.Repeat("x", 5000) + `"}`),
		inMetadata(`"annotations":{"` + config.AnnotationAdmission + `":"` + strings.Repeat("x", 5000) + `"}`),
		inMetadata(`"labels":{` + times(1000, `"l#":""`) + `}`),
		inMetadata(`"ownerReferences":[` + times(1000, `{}`) + `]`),
	}
}

// FuzzReview makes pods from parts of the golden ones and checks everything that
// the golden cases check.
func FuzzReview(f *testing.F) {
	splicer, beds := newSplicer(f), fuzzBeds(f)
	for i := range splicer.pods {
		f.Add(byte(i), []byte{0, byte(i)})
	}
	f.Fuzz(func(t *testing.T, choice byte, data []byte) {
		checkSpliced(t, beds[int(choice)%len(beds)], splicer.splice(data))
	})
}

// The same for some thousand pods, always the same ones, in every run of the
// tests.
func TestSplicedPods(t *testing.T) {
	splicer, beds := newSplicer(t), fuzzBeds(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 5000 {
		data := make([]byte, 2+4*random.IntN(6))
		for k := range data {
			data[k] = byte(random.UintN(256))
		}
		checkSpliced(t, beds[i%len(beds)], splicer.splice(data))
		if t.Failed() {
			t.Fatalf("with pod %s", splicer.splice(data))
		}
	}
	reached := map[string]float64{}
	for _, bed := range beds {
		for decision, count := range decisions(t, bed.registry) {
			reached[decision] += count
		}
	}
	// The test is worth something only if pods of all kinds come up.
	for _, want := range []string{"ranked//false", "late/NothingFits/false", "none/Pinned/false", "none/UserPreference/false", "none/Spread/false", "none/NothingFits/false"} {
		if reached[want] < 20 {
			t.Errorf("%v decisions %s of %v", reached[want], want, reached)
		}
	}
}

func checkSpliced(t *testing.T, bed *testBed, raw []byte) {
	t.Helper()
	bed.forget()
	request := podCreate(raw)
	response := bed.Handle(t.Context(), request)
	result := checkResponse(t, raw, request.UID, response)
	if !decodesStrictly(raw) {
		return
	}
	checkHandledAgain(t, bed, request, result)
	bed.checkNoFailure(t, "panic", string(steering.ReasonPatch))
}

// fuzzBeds are clusters and configurations under which all kinds of answers come
// up.
func fuzzBeds(t testing.TB) []*testBed {
	t.Helper()
	var beds []*testBed
	for _, cluster := range []string{"mixed", "full"} {
		for _, change := range []func(*config.Configuration){
			func(*config.Configuration) {},
			func(c *config.Configuration) { c.Mode = config.ModeDryRun },
			func(c *config.Configuration) { c.LateSteering.Mode, c.Weights.MaxTerms = config.LateOff, 1 },
			func(c *config.Configuration) {
				c.LateSteering.Mode, c.LateSteering.Scope = config.LateAlways, config.LateScopeCluster
				c.Spreading.UserConstraints = config.UserConstraintsIgnore
			},
		} {
			cfg := config.Default()
			change(&cfg)
			beds = append(beds, newBed(t, cfg, []string{"team-a"}, goldenCluster(t, cluster)...))
		}
	}
	return beds
}

// forget lets all reservations of earlier requests end.
func (b *testBed) forget() {
	b.clock = b.clock.Add(time.Hour)
	b.log.Forget()
}

// checkNoFailure checks that none of our own failures is in the log: they do no harm,
// but are bugs.
func (b *testBed) checkNoFailure(t testing.TB, failures ...string) {
	t.Helper()
	text := b.log.Text()
	for _, failure := range failures {
		if strings.Contains(text, failure) {
			t.Errorf("%s in the log: %s", failure, text)
		}
	}
}

// admissionReview wraps a request for the wire.
func admissionReview(request admission.Request) admissionv1.AdmissionReview {
	review := admissionv1.AdmissionReview{Request: &request.AdmissionRequest}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	return review
}
