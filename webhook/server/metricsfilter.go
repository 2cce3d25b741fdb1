package server

import (
	"context"
	"crypto/sha256"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// strangerRate and strangerBurst bound the requests for metrics of one address with
	// credentials that have not been good before. Each can cost the API server a
	// TokenReview, since refusals of forged tokens are not cached. A scraper asks every 15
	// seconds or so, with a token that lasts an hour; ten at once leave room for several
	// scrapers behind one address.
	strangerRate  = 1
	strangerBurst = 10
	// strangers is how many addresses are kept apart, of some 200 bytes each. An address
	// that has been quiet for strangerMemory has its whole burst again, so that nothing is
	// lost when it is forgotten.
	strangers      = 4096
	strangerMemory = strangerBurst / strangerRate * time.Second
	// acquaintances is how many good credentials are remembered, and for how long: more
	// than the scrapers that a cluster has. Whoever is remembered is still authenticated and
	// authorized each time.
	acquaintances      = 64
	acquaintanceMemory = 10 * time.Minute
)

// protectMetrics authenticates and authorizes callers, as controller-runtime does, and
// bounds how often those are asked about whom it does not know.
func protectMetrics(config *rest.Config, client *http.Client) (metricsserver.Filter, error) {
	protect, err := filters.WithAuthenticationAndAuthorization(config, client)
	if err != nil {
		return nil, err
	}
	return func(log logr.Logger, handler http.Handler) (http.Handler, error) {
		door := &door{
			known:     cache.NewLRUExpireCache(acquaintances),
			strangers: cache.NewLRUExpireCache(strangers),
		}
		protected, err := protect(log, door.remember(handler))
		if err != nil {
			return nil, err
		}
		return door.guard(protected), nil
	}, nil
}

// door lets callers through to where they are authenticated.
type door struct {
	// known are credentials that were good a while ago.
	known *cache.LRUExpireCache
	// strangers has a limiter for each address that came with others.
	strangers *cache.LRUExpireCache
}

// digestKey is where a request's context has the digest of its credentials, which the
// authentication takes out of the headers.
type digestKey struct{}

// guard turns away strangers that come too often.
func (d *door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		digest := credentials(r)
		if _, good := d.known.Get(digest); !good && !d.limiter(r).TryAccept() {
			http.Error(w, "Too many requests with unknown credentials", http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), digestKey{}, digest)))
	})
}

// remember is for requests that are authenticated and authorized.
func (d *door) remember(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.known.Add(r.Context().Value(digestKey{}), nil, acquaintanceMemory)
		next.ServeHTTP(w, r)
	})
}

// limiter is that of the caller's address. Two requests at once from a new address may
// make two, of which one stays.
func (d *door) limiter(r *http.Request) flowcontrol.PassiveRateLimiter {
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	limiter, ok := d.strangers.Get(address)
	if !ok {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiter(strangerRate, strangerBurst)
	}
	d.strangers.Add(address, limiter, strangerMemory)
	return limiter.(flowcontrol.PassiveRateLimiter)
}

// credentials are a digest of everything in a request by which it can be authenticated:
// without client certificates, which this endpoint does not ask for, these two headers.
func credentials(r *http.Request) [sha256.Size]byte {
	digest := sha256.New()
	for _, name := range []string{"Authorization", "Sec-Websocket-Protocol"} {
		for _, value := range r.Header.Values(name) {
			sum := sha256.Sum256([]byte(value))
			digest.Write(sum[:])
		}
		digest.Write([]byte(name))
	}
	return [sha256.Size]byte(digest.Sum(nil))
}
