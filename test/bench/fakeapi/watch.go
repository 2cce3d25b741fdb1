package fakeapi

import (
	"bufio"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// bookmarkInterval is how often a watch without changes gets a bookmark, as from
	// kube-apiserver.
	bookmarkInterval = time.Minute
	// longestWatch ends watches that name no time.
	longestWatch = time.Hour
)

// stream is the answer to one watch.
type stream struct {
	*request
	out     *bufio.Writer
	flusher *http.ResponseController
	frame   []byte
	// position is the version up to which the client has been told.
	position uint64
}

// watch answers a watch: first what exists, if that is asked for, then changes.
func (req *request) watch(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	initial := query.Get("sendInitialEvents") == "true"
	if _, now, _, ok := req.resource.since(req.version); ok && req.version > now {
		tooLarge(w)
		return
	} else if !ok && !initial && req.version > 0 {
		status := tooOld()
		refuse(w, int(status.Code), status.Reason, status.Message)
		return
	}
	duration := longestWatch
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		duration = time.Duration(seconds) * time.Second
	}
	end := time.NewTimer(duration)
	defer end.Stop()
	w.Header().Set("Content-Type", protobuf+";stream=watch")
	w.WriteHeader(http.StatusOK)
	s := &stream{request: req, out: bufio.NewWriterSize(w, bufferSize), flusher: http.NewResponseController(w), position: req.version}
	if initial || req.version == 0 {
		s.writeInitial(initial)
	}
	s.follow(r.Context().Done(), end.C, query.Get("allowWatchBookmarks") == "true")
}

// writeInitial writes what exists and, for a streamed list, the bookmark that ends it.
func (s *stream) writeInitial(bookmark bool) {
	all, version := s.resource.snapshot()
	for i := range all {
		s.write(watch.Added, all[i].data)
	}
	s.position = version
	if bookmark {
		s.writeBookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
}

// follow writes changes until the client is gone or the time is over.
func (s *stream) follow(gone <-chan struct{}, end <-chan time.Time, bookmarks bool) {
	ticker := time.NewTicker(bookmarkInterval)
	defer ticker.Stop()
	for {
		events, now, changed, ok := s.resource.since(s.position)
		if !ok {
			s.writeExpired()
			return
		}
		for i := range events {
			s.write(events[i].kind, events[i].data)
		}
		s.position = now
		if s.flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-ticker.C:
			if bookmarks {
				s.writeBookmark(nil)
			}
		case <-end:
			return
		case <-gone:
			return
		}
	}
}

// writeBookmark tells the client the version that it has reached. Of an object it
// has metadata alone, which is field 1 of all types.
func (s *stream) writeBookmark(annotations map[string]string) {
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(s.position, 10), Annotations: annotations}}
	if data, err := object.Marshal(); err == nil {
		s.write(watch.Bookmark, data)
	}
}

// writeExpired tells the client to begin anew.
func (s *stream) writeExpired() {
	status := tooOld()
	if data, err := status.Marshal(); err == nil {
		s.frame = appendFrame(s.frame[:0], string(watch.Error), status.TypeMeta, data)
		_, _ = s.out.Write(s.frame)
		_ = s.flush()
	}
}

// write writes an event; flush returns what went wrong.
func (s *stream) write(kind watch.EventType, data []byte) {
	s.frame = appendFrame(s.frame[:0], string(kind), s.item, data)
	_, _ = s.out.Write(s.frame)
}

func (s *stream) flush() error {
	if err := s.out.Flush(); err != nil {
		return err
	}
	return s.flusher.Flush()
}
