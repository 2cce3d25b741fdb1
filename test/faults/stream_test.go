package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	// attemptTimeout is how long one try to create a pod may take. A tenth of
	// it is already too slow for a row to pass.
	attemptTimeout = 20 * time.Second
	// retryInterval is the pause between two tries.
	retryInterval = time.Second
	// maxInFlight bounds the creations under way: while the API server is down
	// they only pile up.
	maxInFlight = 200
	// maxCreated bounds a stream: two hours of the soak.
	maxCreated = 150_000
	// maxAlive is how many pods of a stream exist at a time. Older ones are
	// deleted, so that nodes stay free for those to come.
	maxAlive = 40
)

// creation is a pod that was created.
type creation struct {
	name    string
	began   time.Time
	took    time.Duration
	steered bool
}

// stream creates pods at a steady rate, whether or not earlier ones are created
// yet, as users do.
type stream struct {
	client    client.Client
	namespace string
	interval  time.Duration

	cancel  context.CancelFunc
	running sync.WaitGroup
	slots   chan struct{}

	mu sync.Mutex // guards what follows
	// created in the order in which the answers came.
	created []creation
	// alive are the names of pods that exist, oldest first.
	alive []string
	// denied are refusals because of the webhook.
	denied []error
	// unavailable counts the tries that the API server did not serve, and
	// lastUnavailable says why.
	unavailable     int
	lastUnavailable error
}

// startStream starts to create pods until stop. ctx limits the whole.
func startStream(ctx context.Context, c client.Client, namespace string, perSecond int) *stream {
	ticking, cancel := context.WithCancel(ctx)
	s := &stream{
		client: c, namespace: namespace, interval: time.Second / time.Duration(perSecond),
		cancel: cancel, slots: make(chan struct{}, maxInFlight),
	}
	s.running.Go(func() { s.tick(ctx, ticking) })
	return s
}

// stop lets the creations under way end and deletes the pods.
func (s *stream) stop(ctx context.Context) error {
	s.cancel()
	s.running.Wait()
	return wait(ctx, "the pods of "+s.namespace+" to be deleted", func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		inNamespace := client.InNamespace(s.namespace)
		err := s.client.DeleteAllOf(ctx, &corev1.Pod{}, inNamespace, client.GracePeriodSeconds(0))
		if err == nil {
			err = s.client.List(ctx, pods, inNamespace)
		}
		return err == nil && len(pods.Items) == 0, err
	})
}

func (s *stream) tick(ctx, ticking context.Context) {
	ticker := time.NewTicker(s.interval)
	defer ticker.Stop()
	for n := 0; n < maxCreated; {
		select {
		case <-ticking.Done():
			return
		case <-ticker.C:
		}
		select {
		case s.slots <- struct{}{}:
			name := fmt.Sprintf("pod-%d", n)
			s.running.Go(func() {
				defer func() { <-s.slots }()
				s.create(ctx, name)
			})
			n++
		default: // as many are under way as may be
		}
	}
}

// create creates a pod. It tries again when the API server did not serve the
// request: that is no matter of the webhook.
func (s *stream) create(ctx context.Context, name string) {
	for retry := false; ; retry = true {
		began := time.Now()
		pod, err := s.try(ctx, name, retry)
		if err == nil {
			s.noteCreated(creation{name, began, time.Since(began), pod.Annotations[config.AnnotationSteering] != ""})
			s.deleteOldest(ctx)
			return
		}
		if s.noteFailed(name, err) || !pause(ctx, retryInterval) {
			return
		}
	}
}

func (s *stream) try(ctx context.Context, name string, retry bool) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	pod := gpuPod(s.namespace, name)
	err := s.client.Create(ctx, pod)
	if retry && apierrors.IsAlreadyExists(err) { // only the answer was lost
		err = s.client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	}
	return pod, err
}

func (s *stream) noteCreated(c creation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = append(s.created, c)
	s.alive = append(s.alive, c.name)
}

// noteFailed tells whether the pod was denied.
func (s *stream) noteFailed(name string, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isDenial(err) {
		s.denied = append(s.denied, fmt.Errorf("pod %s: %w", name, err))
		return true
	}
	s.unavailable++
	s.lastUnavailable = fmt.Errorf("pod %s: %w", name, err)
	return false
}

// isDenial tells whether the API server refused the pod because of us: it names a
// webhook, or does not like the pod, which is valid without us.
func isDenial(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "webhook") ||
		apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}

// deleteOldest keeps the number of pods. A pod that cannot be deleted now is
// deleted with all others in the end.
func (s *stream) deleteOldest(ctx context.Context) {
	s.mu.Lock()
	var oldest []string
	if surplus := len(s.alive) - maxAlive; surplus > 0 {
		oldest = s.alive[:surplus]
		s.alive = s.alive[surplus:]
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	for _, name := range oldest {
		_ = s.client.Delete(ctx, gpuPod(s.namespace, name), client.GracePeriodSeconds(0))
	}
}

// since returns the creations that began after a moment.
func (s *stream) since(moment time.Time) []creation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []creation
	for _, c := range s.created {
		if c.began.After(moment) {
			found = append(found, c)
		}
	}
	return found
}

// unsteeredSince is how many pods were created without steering.
func (s *stream) unsteeredSince(moment time.Time) int {
	unsteered := 0
	for _, c := range s.since(moment) {
		if !c.steered {
			unsteered++
		}
	}
	return unsteered
}

// unavailability is how many tries the API server did not serve, and why the last
// of them was not.
func (s *stream) unavailability() (tries int, last error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unavailable, s.lastUnavailable
}

// denials are the errors of denied pods.
func (s *stream) denials() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.denied
}

// slowest is the longest creation outside of an outage of the API server itself.
func (s *stream) slowest(outage period) time.Duration {
	var slowest time.Duration
	for _, c := range s.since(time.Time{}) {
		if !outage.overlaps(c.began, c.began.Add(c.took)) {
			slowest = max(slowest, c.took)
		}
	}
	return slowest
}

// period is a stretch of time, none when it is zero.
type period struct{ from, to time.Time }

func (p period) overlaps(from, to time.Time) bool {
	return !p.from.IsZero() && from.Before(p.to) && to.After(p.from)
}

// gpuPod asks for one GPU.
func gpuPod(namespace, name string) *corev1.Pod {
	limits := corev1.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("64Gi"), "nvidia.com/gpu": resource.MustParse("1"),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "train", Image: "train:1", Resources: corev1.ResourceRequirements{Limits: limits},
		}}},
	}
}

// pause returns true after the duration, or false when ctx ends before.
func pause(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
