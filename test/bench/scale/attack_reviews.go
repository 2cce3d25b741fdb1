package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
)

// poster posts reviews over one connection.
type poster struct {
	url       string
	transport *http.Transport
}

func newPoster(address string) *poster {
	return &poster{"https://" + address + config.WebhookPath, &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxConnsPerHost: 1,
	}}
}

func (p *poster) close() { p.transport.CloseIdleConnections() }

func (p *poster) post(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.transport.RoundTrip(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// reviewOf is a review of a pod's creation.
func reviewOf(pod []byte, namespace, uid string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":%q,"operation":"CREATE","namespace":%q,`+
		`"kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"object":%s}}`, uid, namespace, pod)
}

// isSteered tells whether an answer has a patch.
func isSteered(answer []byte) bool { return bytes.Contains(answer, []byte(`"patch":`)) }

// hostilePodJSON is a GPU pod with more in its metadata and its spec, each ending in a comma.
func hostilePodJSON(metadata, spec string) []byte {
	return fmt.Appendf(nil, `{"metadata":{%s"name":"p"},"spec":{%s"containers":[{"name":"c","resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`, metadata, spec)
}

// hostileReview is the n-th of those that cost most.
func hostileReview(n int) []byte {
	var pod []byte
	switch n % 5 {
	case 0: // a kind of its own, with as much to keep as is allowed
		var tolerations []string
		for i := range 60 {
			tolerations = append(tolerations, fmt.Sprintf(`{"key":"%d-%d-%s","operator":"Exists"}`, n, i, strings.Repeat("x", 900)))
		}
		pod = hostilePodJSON("", `"tolerations":[`+strings.Join(tolerations, ",")+`],`)
	case 1: // a short body that is long when it is decoded
		pod = hostilePodJSON("", `"volumes":[{}`+strings.Repeat(",{}", 50_000)+`],`)
	case 2: // the largest body
		pod = hostilePodJSON(`"managedFields":"`+strings.Repeat("x", 4<<20-2000)+`",`, "")
	case 3: // the largest pod
		pod = hostilePodJSON(`"annotations":{"a":"`+strings.Repeat("x", 1<<20-2000)+`"},`, "")
	case 4: // many preferences
		var terms []string
		for i := range 190 {
			terms = append(terms, fmt.Sprintf(`{"weight":50,"preference":{"matchExpressions":[{"key":"k%d","operator":"DoesNotExist"}]}}`, i))
		}
		pod = hostilePodJSON("", `"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[`+strings.Join(terms, ",")+`]}},`)
	}
	return reviewOf(pod, cluster.Namespace, fmt.Sprintf("hostile-%d", n))
}
