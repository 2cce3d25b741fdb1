package fakeapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protobuf is the media type of objects.
const protobuf = "application/vnd.kubernetes.protobuf"

// tooLargeRetry is what kube-apiserver says to a client that is ahead of it.
const tooLargeRetry = 1

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}})
	})
	mux.HandleFunc("GET /api/v1", s.discover)
	mux.HandleFunc("GET /api/v1/{resource}", s.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, r.Method+" "+r.URL.Path+": the fake API server does not have that")
	})
	return mux
}

func (s *Server) discover(w http.ResponseWriter, _ *http.Request) {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1"}
	for name, r := range s.resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Namespaced: r.namespaced, Kind: r.kind, Verbs: metav1.Verbs{"list", "watch"}})
	}
	writeJSON(w, http.StatusOK, list)
}

// request is what a client asks for.
type request struct {
	resource *resource
	// item and list are the types of the answer.
	item, list metav1.TypeMeta
	// version is the resource version asked for, 0 for none or any.
	version uint64
}

// serve answers a list or a watch.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	req := request{resource: s.resources[r.PathValue("resource")]}
	switch {
	case req.resource == nil:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "the fake API server has no "+r.PathValue("resource"))
		return
	case query.Get("labelSelector") != "" || query.Get("fieldSelector") != "":
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "the fake API server knows no selectors")
		return
	case !req.negotiate(r.Header.Get("Accept")):
		refuse(w, http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, "the fake API server has only protobuf, not "+r.Header.Get("Accept"))
		return
	}
	if text := query.Get("resourceVersion"); text != "" {
		version, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "resourceVersion "+strconv.Quote(text)+" is no number")
			return
		}
		req.version = version
	}
	if watching := query.Get("watch"); watching == "true" || watching == "1" {
		s.count("watch " + r.PathValue("resource"))
		req.watch(w, r)
		return
	}
	s.count("list " + r.PathValue("resource"))
	req.writeList(w, r)
}

// negotiate sets the types of the answer; false when the client does not take
// protobuf.
func (req *request) negotiate(accept string) bool {
	for _, clause := range strings.Split(accept, ",") {
		mediaType, parameters, _ := strings.Cut(strings.TrimSpace(clause), ";")
		if mediaType != protobuf {
			continue
		}
		if strings.Contains(parameters, "as=Table") {
			continue
		}
		version, kind := "v1", req.resource.kind
		if strings.Contains(parameters, "as=PartialObjectMetadata") {
			// Metadata is field 1 of all objects and the only one of this type, which
			// skips the others when it is decoded: the bytes can stay as they are.
			version, kind = metav1.SchemeGroupVersion.String(), "PartialObjectMetadata"
		}
		req.item = metav1.TypeMeta{APIVersion: version, Kind: kind}
		req.list = metav1.TypeMeta{APIVersion: version, Kind: kind + "List"}
		return true
	}
	return false
}

// count notes a request.
func (s *Server) count(what string) {
	for {
		before, _ := s.requests.LoadOrStore(what, 0)
		if n := before.(int); s.requests.CompareAndSwap(what, n, n+1) {
			return
		}
	}
}

// Requests is how many requests there were of a kind, such as "list pods".
func (s *Server) Requests(what string) int {
	n, _ := s.requests.Load(what)
	count, _ := n.(int)
	return count
}

func writeJSON(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // a client that is gone
}

// refuse answers with a Status, which client-go turns into an error.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	writeJSON(w, code, newStatus(code, reason, message))
}

func newStatus(code int, reason metav1.StatusReason, message string) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
}

// tooOld is the answer about a version whose successors are forgotten.
func tooOld() *metav1.Status {
	return newStatus(http.StatusGone, metav1.StatusReasonExpired, "too old resource version")
}

// tooLarge is the answer about a version that does not exist yet. kube-apiserver
// would wait for it for three seconds first.
func tooLarge(w http.ResponseWriter) {
	status := newStatus(http.StatusGatewayTimeout, metav1.StatusReasonTimeout, "Too large resource version")
	status.Details = &metav1.StatusDetails{
		RetryAfterSeconds: tooLargeRetry,
		Causes:            []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}},
	}
	writeJSON(w, http.StatusGatewayTimeout, status)
}
