package podstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	// attemptTimeout is how long one try to create a pod may take. A tenth of
	// it is already too slow for a test to pass.
	attemptTimeout = 20 * time.Second
	// retryInterval is the pause between two tries.
	retryInterval = time.Second
	// maxInFlight bounds the creations under way: while the API server is down
	// they only pile up.
	maxInFlight = 200
	// maxCreated bounds a stream: two hours of the soak.
	maxCreated = 150_000
	// maxAlive is the default of Options.MaxAlive.
	maxAlive = 40

	// deleteTimeout limits the wait for a stream's pods to be gone.
	deleteTimeout  = 2 * time.Minute
	deleteInterval = 50 * time.Millisecond
)

// Options say what a stream creates.
type Options struct {
	// Client creates and deletes the pods.
	Client client.Client
	// Namespace is where the pods are. It holds no others.
	Namespace string
	// PerSecond is how many pods are begun in a second.
	PerSecond int
	// MaxAlive is how many of its pods exist at a time, as far as the API server keeps
	// up. Older ones are deleted, so that nodes stay free for those to come. Default 40.
	MaxAlive int
	// Pod makes a pod of that namespace and name. Default: GPUPod.
	Pod func(namespace, name string) *corev1.Pod
}

// Creation is a pod that was created.
type Creation struct {
	Name  string
	Began time.Time
	// Took is the time until the API server's answer.
	Took time.Duration
	// Steering is the annotation that says how the pod was steered, empty if it
	// was not.
	Steering string
}

// Stream creates pods at a steady rate, whether or not earlier ones are created
// yet, as users do. Its methods may be called from any goroutine.
type Stream struct {
	options Options

	cancel  context.CancelFunc
	running sync.WaitGroup
	slots   chan struct{}

	mu sync.Mutex // guards what follows
	// created in the order in which the answers came.
	created []Creation
	// alive are the names of pods that exist, oldest first.
	alive []string
	// denied are refusals because of the webhook.
	denied []error
	// unavailable counts the tries that the API server did not serve, and
	// lastUnavailable says why.
	unavailable     int
	lastUnavailable error
}

// Start starts to create pods until Stop. ctx limits the whole.
func Start(ctx context.Context, options Options) *Stream {
	if options.Pod == nil {
		options.Pod = GPUPod
	}
	if options.MaxAlive == 0 {
		options.MaxAlive = maxAlive
	}
	ticking, cancel := context.WithCancel(ctx)
	s := &Stream{options: options, cancel: cancel, slots: make(chan struct{}, maxInFlight)}
	s.running.Go(func() { s.tick(ctx, ticking) })
	return s
}

// Stop lets the creations under way end and deletes the pods. It returns when they
// are gone.
func (s *Stream) Stop(ctx context.Context) error {
	s.cancel()
	s.running.Wait()
	var last error
	err := wait.PollUntilContextTimeout(ctx, deleteInterval, deleteTimeout, true, func(ctx context.Context) (bool, error) {
		pods := &corev1.PodList{}
		inNamespace := client.InNamespace(s.options.Namespace)
		last = s.options.Client.DeleteAllOf(ctx, &corev1.Pod{}, inNamespace, client.GracePeriodSeconds(0))
		if last == nil {
			last = s.options.Client.List(ctx, pods, inNamespace)
		}
		return last == nil && len(pods.Items) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the pods of %s to be deleted: %w", s.options.Namespace, errors.Join(err, last))
	}
	return nil
}

func (s *Stream) tick(ctx, ticking context.Context) {
	ticker := time.NewTicker(time.Second / time.Duration(s.options.PerSecond))
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
func (s *Stream) create(ctx context.Context, name string) {
	for retry := false; ; retry = true {
		began := time.Now()
		pod, err := s.try(ctx, name, retry)
		if err == nil {
			s.noteCreated(Creation{name, began, time.Since(began), pod.Annotations[config.AnnotationSteering]})
			s.deleteOldest(ctx)
			return
		}
		if s.noteFailed(name, err) || !Pause(ctx, retryInterval) {
			return
		}
	}
}

func (s *Stream) try(ctx context.Context, name string, retry bool) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	pod := s.options.Pod(s.options.Namespace, name)
	err := s.options.Client.Create(ctx, pod)
	if retry && apierrors.IsAlreadyExists(err) { // only the answer was lost
		err = s.options.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	}
	return pod, err
}

func (s *Stream) noteCreated(c Creation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.created = append(s.created, c)
	s.alive = append(s.alive, c.Name)
}

// noteFailed tells whether the pod was denied.
func (s *Stream) noteFailed(name string, err error) bool {
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
func (s *Stream) deleteOldest(ctx context.Context) {
	s.mu.Lock()
	var oldest []string
	if surplus := len(s.alive) - s.options.MaxAlive; surplus > 0 {
		oldest = s.alive[:surplus]
		s.alive = s.alive[surplus:]
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	for _, name := range oldest {
		_ = s.options.Client.Delete(ctx, s.options.Pod(s.options.Namespace, name), client.GracePeriodSeconds(0))
	}
}

// Since returns the creations that began after a moment, all for the zero time.
func (s *Stream) Since(moment time.Time) []Creation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Creation
	for _, c := range s.created {
		if c.Began.After(moment) {
			found = append(found, c)
		}
	}
	return found
}

// Unavailability is how many tries the API server did not serve, and why the last
// of them was not.
func (s *Stream) Unavailability() (tries int, last error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unavailable, s.lastUnavailable
}

// Denials are the errors of denied pods.
func (s *Stream) Denials() []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.denied
}

// Pause returns true after the duration, or false when ctx ends before.
func Pause(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
