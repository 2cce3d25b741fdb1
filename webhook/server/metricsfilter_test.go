package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// scraperToken is what tokens begin with that the API server of these tests knows.
const scraperToken = "of-the-scraper"

// reviewer is an API server that only reviews tokens and accesses.
type reviewer struct{ tokens atomic.Int64 }

func (v *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/apis/authorization.k8s.io/v1/subjectaccessreviews" {
		_ = json.NewEncoder(w).Encode(authorizationv1.SubjectAccessReview{Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}})
		return
	}
	v.tokens.Add(1)
	var review authenticationv1.TokenReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.HasPrefix(review.Spec.Token, scraperToken) {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "scraper"}}
	} else {
		review.Status.Error = "invalid bearer token" // as kube-apiserver says of a forged one
	}
	_ = json.NewEncoder(w).Encode(review)
}

// protectedMetrics is a handler behind the filter, and the API server that it asks.
func protectedMetrics(t *testing.T) (http.Handler, *reviewer) {
	t.Helper()
	api := &reviewer{}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	filter, err := protectMetrics(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }))
	if err != nil {
		t.Fatal(err)
	}
	return handler, api
}

// scrape asks for the metrics and returns the status.
func scrape(handler http.Handler, address, header, value string) int {
	r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	r.RemoteAddr = address + ":40000"
	if header == "Sec-Websocket-Protocol" { // the other way to bring a token
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
	}
	if header != "" {
		r.Header.Set(header, value)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Code
}

// However many forged tokens an address sends, the API server is asked about few of them,
// and scrapers get the metrics all the while: from another address also for the first
// time, from the same one if they have got them before.
func TestForgedMetricsTokensAreBounded(t *testing.T) {
	for name, forge := range map[string]func(i int) (header, value string){
		"each another": func(i int) (string, string) { return "Authorization", fmt.Sprintf("Bearer forged-%d", i) },
		"one again":    func(int) (string, string) { return "Authorization", "Bearer forged" },
		"by websocket": func(i int) (string, string) {
			return "Sec-Websocket-Protocol", fmt.Sprintf("base64url.bearer.authorization.k8s.io.Zm9yZ2Vk%04d, x", i)
		},
	} {
		t.Run(name, func(t *testing.T) {
			handler, api := protectedMetrics(t)
			const attacker, neighbour = "10.0.0.1", "10.0.0.2"
			if code := scrape(handler, attacker, "Authorization", "Bearer "+scraperToken); code != http.StatusOK {
				t.Fatalf("a scraper gets status %d", code)
			}
			turnedAway := 0
			for i := range 1000 {
				header, value := forge(i)
				switch code := scrape(handler, attacker, header, value); code {
				case http.StatusTooManyRequests:
					turnedAway++
				case http.StatusOK:
					t.Fatal("a forged token gets the metrics")
				}
			}
			// The burst, and what comes back of it while this test runs.
			if asked := api.tokens.Load(); asked > 100 || turnedAway < 900 {
				t.Errorf("%d tokens reviewed, %d of 1000 requests turned away", asked, turnedAway)
			}
			for _, address := range []string{attacker, neighbour} {
				if code := scrape(handler, address, "Authorization", "Bearer "+scraperToken); code != http.StatusOK {
					t.Errorf("a scraper at %s gets status %d", address, code)
				}
			}
			if code := scrape(handler, neighbour, "Authorization", "Bearer another"); code != http.StatusInternalServerError {
				t.Errorf("a neighbour's forged token gets status %d", code)
			}
		})
	}
}

// Several scrapers behind one address begin at the same time, each with a token of its
// own, and none is turned away.
func TestScrapersBehindOneAddress(t *testing.T) {
	handler, _ := protectedMetrics(t)
	for i := range strangerBurst {
		if code := scrape(handler, "10.0.0.1", "Authorization", fmt.Sprintf("Bearer %s-%d", scraperToken, i)); code != http.StatusOK {
			t.Errorf("scraper %d gets status %d", i, code)
		}
	}
	if code := scrape(handler, "10.0.0.3", "", ""); code != http.StatusUnauthorized {
		t.Errorf("without a token: status %d", code)
	}
}
