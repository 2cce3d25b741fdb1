package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

const (
	// callers is how many requests of strangers are under way at a time.
	callers = 16
	// callTimeout limits one request of a stranger. On a busy machine a body of
	// megabytes takes seconds.
	callTimeout = time.Minute
	// largestObject is what the API server takes, maxBodyBytes in webhook/server/http.go
	// what the webhook takes.
	largestObject, overLimit = 3 << 20, 5 << 20
)

// anyAnswer is what a stranger got: an answer, or none.
type anyAnswer struct {
	status  int // 0 when the connection was cut
	allowed bool
}

// check returns an error for an answer that would refuse a pod. A connection that
// is cut and a status other than 200 are failed calls, which are ignored.
func (a anyAnswer) check() error {
	if a.status == http.StatusOK && !a.allowed {
		return fmt.Errorf("a request got status %d without allowed:true", a.status)
	}
	return nil
}

// garbage sends requests to the replicas that the API server would never send.
func garbage(requests int) fault {
	answered := 0
	return fault{
		name:  fmt.Sprintf("%d garbage and oversized requests", requests),
		short: true,
		inject: func(ctx context.Context, b *bed) error {
			var err error
			answered, err = b.sendGarbage(ctx, requests)
			return err
		},
		shows: func(ctx context.Context, b *bed, since time.Time) (bool, error) {
			if answered < requests/2 {
				return false, fmt.Errorf("only %d of %d requests got an answer", answered, requests)
			}
			return created(podsPerSecond)(ctx, b, since)
		},
	}
}

// sendGarbage returns how many requests got an answer, of whatever kind.
func (b *bed) sendGarbage(ctx context.Context, requests int) (answered int, err error) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: callers}
	defer transport.CloseIdleConnections()
	strangers := &http.Client{Transport: transport, Timeout: callTimeout}
	answers := make([]anyAnswer, requests)
	var group errgroup.Group
	group.SetLimit(callers)
	replicas := b.installed.Replicas()
	for n := range answers {
		group.Go(func() error {
			request, err := garbageRequest(ctx, n, "https://"+replicas[n%len(replicas)].WebhookAddress()+config.WebhookPath)
			if err != nil {
				return err
			}
			answers[n] = send(strangers, request)
			return answers[n].check()
		})
	}
	err = group.Wait()
	for _, answer := range answers {
		if answer.status != 0 {
			answered++
		}
	}
	return answered, err
}

// send returns what came of a request.
func send(c *http.Client, request *http.Request) anyAnswer {
	response, err := c.Do(request)
	if err != nil {
		return anyAnswer{}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return anyAnswer{}
	}
	return parseAnswer(response.StatusCode, body)
}

func parseAnswer(status int, body []byte) anyAnswer {
	review := &admissionv1.AdmissionReview{}
	allowed := json.Unmarshal(body, review) == nil && review.Response != nil && review.Response.Allowed
	return anyAnswer{status: status, allowed: allowed}
}

// garbageRequest returns request n: mostly small ones, every hundredth large.
func garbageRequest(ctx context.Context, n int, url string) (*http.Request, error) {
	random := rand.New(rand.NewPCG(uint64(n), 12))
	body, method, contentType := garbageBody(random, n), http.MethodPost, "application/json"
	switch random.IntN(20) {
	case 0:
		method = http.MethodGet
	case 1:
		contentType = "text/plain"
	case 2:
		url += "/elsewhere"
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	return request, nil
}

// garbageBody returns a body that is no review, or one with a pod that is none.
func garbageBody(random *rand.Rand, n int) []byte {
	valid := review(gpuPodJSON("garbage"))
	switch n % 400 {
	case 99:
		return bytes.Repeat([]byte("x"), overLimit)
	case 199: // as many elements as fit
		return []byte(`{"request":[` + strings.Repeat("{},", largestObject/3) + `{}]}`)
	case 299: // nested as deeply as fits
		return bytes.Repeat([]byte("["), largestObject)
	case 399: // a review of a pod with that many containers
		return review([]byte(`{"spec":{"containers":[` + strings.Repeat("{},", 40_000) + `{}]}}`))
	}
	switch n % 6 {
	case 0:
		return valid[:random.IntN(len(valid))]
	case 1:
		for range 1 + random.IntN(20) {
			valid[random.IntN(len(valid))] = byte(random.Uint32())
		}
		return valid
	case 2:
		return nil
	case 3:
		return review([]byte(`{"spec":{"containers":"none","affinity":[1,2,3]}}`))
	case 4:
		return review([]byte(`null`))
	default:
		noise := make([]byte, random.IntN(4096))
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		return noise
	}
}

// review is the body of a request of the API server about the creation of a pod,
// on trial, so that nothing is reserved for it.
func review(pod []byte) []byte {
	body := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       types.UID(fmt.Sprint("stranger-", rand.Uint64())),
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: steeredNamespace, Operation: admissionv1.Create, DryRun: ptr.To(true),
			Object: runtime.RawExtension{Raw: pod},
		},
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // the pod is no JSON: a mistake in this file
	}
	return text
}

func gpuPodJSON(name string) []byte {
	text, err := json.Marshal(podstream.GPUPod(steeredNamespace, name))
	if err != nil {
		panic(err) // a mistake in gpuPod
	}
	return text
}
