package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
)

// observer follows the pods of one namespace through a watch.
type observer struct {
	// nodes: node name -> index in the workload.
	nodes map[string]int

	mu   sync.Mutex // guards all below
	pods map[types.UID]*observed
	// used GPUs by index of the node, of the pods that exist.
	used []int64
	// changed is closed and replaced with every event.
	changed chan struct{}
	seen    progress
	// waits are the times from a pod's creation to its binding, of the pods
	// created since measureWaits was called; nil before.
	waits *waits
	// bound: pod name -> when it was bound.
	bound map[string]time.Time
}

// observed is what is known of one pod.
type observed struct {
	gpus int64
	// node is the index of the pod's node, -1 without.
	node int
	// waiting: the scheduler has found no node so far; refused: it once did not.
	waiting, refused bool
	// created is when the pod was seen first; measured tells whether its waiting
	// time counts.
	created  time.Time
	measured bool
}

// progress is what the watch has shown so far.
type progress struct {
	// created and bound count pods, gone those that were deleted unbound. waiting
	// ones are unschedulable now.
	created, bound, gone, waiting int
	// refused8 are 8-GPU pods for which there was no node at some time, or that
	// were deleted unbound; unbound8 those that wait for one.
	refused8, unbound8 int
	lastBound          time.Time
	landed             report.Landed
	late, unsteered    int
}

// decided tells whether the scheduler has bound every pod or called it
// unschedulable, and so many pods were created.
func (p progress) decided(count int) bool {
	return p.created >= count && p.bound+p.waiting+p.gone >= p.created
}

// large is the size of pods that are counted when they find no node.
const large = 8

// observe starts watching. It returns when the watch is up, and watches until ctx
// ends.
func observe(ctx context.Context, clients kubernetes.Interface, namespace string, nodes int) (*observer, error) {
	o := &observer{
		nodes: make(map[string]int, nodes), used: make([]int64, nodes),
		pods: map[types.UID]*observed{}, changed: make(chan struct{}), bound: map[string]time.Time{},
	}
	for i := range nodes {
		o.nodes[nodeName(i)] = i
	}
	source := cache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "pods", namespace, fields.Everything())
	informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { o.set(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { o.set(object.(*corev1.Pod)) },
		DeleteFunc: o.remove,
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watching pods: %w", ctx.Err())
	}
	return o, nil
}

// set takes in a new or changed pod.
func (o *observer) set(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.pods[pod.UID]
	if known == nil {
		quantity := pod.Spec.Containers[0].Resources.Requests[gpu]
		known = &observed{gpus: quantity.Value(), node: -1, created: time.Now(), measured: o.waits != nil}
		o.pods[pod.UID] = known
		o.seen.created++
		o.countSteering(pod)
	}
	switch {
	case known.node < 0 && pod.Spec.NodeName != "":
		o.setWaiting(known, false)
		known.node = o.nodes[pod.Spec.NodeName]
		o.used[known.node] += known.gpus
		o.seen.bound++
		o.noteBound(pod.Name, known)
		o.countLanding(pod)
	case known.node < 0:
		o.setWaiting(known, isUnschedulable(pod))
	}
	o.signal()
}

// noteBound notes when a pod was bound, and how long it waited. Call under lock.
func (o *observer) noteBound(name string, p *observed) {
	now := time.Now()
	o.seen.lastBound, o.bound[name] = now, now
	if p.measured {
		o.waits.add(p.gpus, now.Sub(p.created))
	}
}

// setWaiting notes whether the scheduler has found no node. Call under lock.
func (o *observer) setWaiting(p *observed, waiting bool) {
	if p.waiting == waiting {
		return
	}
	p.waiting = waiting
	change := -1
	if waiting {
		change = 1
		if p.gpus >= large && !p.refused {
			o.seen.refused8++
		}
		p.refused = true
	}
	o.seen.waiting += change
	if p.gpus >= large {
		o.seen.unbound8 += change
	}
}

// remove takes in the end of a pod.
func (o *observer) remove(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.pods[pod.UID]
	if known == nil {
		return
	}
	delete(o.pods, pod.UID)
	if known.node >= 0 {
		o.used[known.node] -= known.gpus
	} else {
		o.setWaiting(known, true)
		o.setWaiting(known, false)
		o.seen.gone++
	}
	o.signal()
}

// countSteering counts a pod that was steered otherwise than by a ranking.
func (o *observer) countSteering(pod *corev1.Pod) {
	switch pod.Annotations[config.AnnotationSteering] {
	case config.SteeringRanked:
	case config.SteeringLate:
		o.seen.late++
	default:
		o.seen.unsteered++
	}
}

// countLanding compares a pod's node with its ranking.
func (o *observer) countLanding(pod *corev1.Pod) {
	if pod.Annotations[config.AnnotationSteering] != config.SteeringRanked {
		return
	}
	switch {
	case pod.Annotations[config.AnnotationTarget] == pod.Spec.NodeName:
		o.seen.landed.Target++
	case lists(pod, pod.Spec.NodeName):
		o.seen.landed.Listed++
	default:
		o.seen.landed.Other++
	}
}

// lists tells whether the pod has a preferred term for the node by name.
func lists(pod *corev1.Pod, node string) bool {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return false
	}
	for _, term := range pod.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		for _, field := range term.Preference.MatchFields {
			if len(field.Values) == 1 && field.Values[0] == node {
				return true
			}
		}
	}
	return false
}

func isUnschedulable(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable
		}
	}
	return false
}

// signal wakes those who wait. Call under lock.
func (o *observer) signal() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// look returns what was seen, and a channel that is closed at the next event.
func (o *observer) look() (progress, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen, o.changed
}

// boundAt returns when the pod was bound, as soon as it is.
func (o *observer) boundAt(ctx context.Context, name string) (time.Time, error) {
	for {
		o.mu.Lock()
		at, ok := o.bound[name]
		changed := o.changed
		o.mu.Unlock()
		if ok {
			return at, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}

// measureWaits lets the waiting times of the pods count that are created from now
// on.
func (o *observer) measureWaits() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waits = &waits{}
}

// inUse returns a copy of the GPUs in use by node.
func (o *observer) inUse() []int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]int64(nil), o.used...)
}

// errStalled says that nothing happened for too long.
var errStalled = errors.New("nothing more happens")

// wait returns when done is true, or with errStalled when there was no event for
// patience.
func (o *observer) wait(ctx context.Context, patience time.Duration, done func(progress) bool) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		seen, changed := o.look()
		if done(seen) {
			return nil
		}
		timer.Reset(patience)
		select {
		case <-changed:
		case <-timer.C:
			return errStalled
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
