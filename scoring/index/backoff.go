package index

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// A node whose device plugin or driver is broken fails every GPU pod within seconds. The
// pods free their GPUs, the node looks as good as before, and whoever packs sends the next
// ones there: a black hole. So a node that refused several GPU pods in a row is no
// candidate for a while, longer each time it happens again.
//
// In a row means that no GPU pod has started on the node since the first of them, at
// whatever rate they come. One namespace's pods alone may all be wrong in the same way, with
// a command that does not exist, so they put the node out for that namespace; those of two
// put it out for everybody. What the topology manager refuses says something of pods with
// the same requests only, and all of it only of pods that ask for the same GPU resource.
//
// All of it follows from outcomes of pods (see package reduced) and their times, in
// whatever order they become known: so all replicas say the same, and one that was
// restarted too, as far as the API still shows the pods.

// scope are the pods that a node is no candidate for.
type scope struct {
	// namespace is theirs; empty for pods of all.
	namespace string
	subject
}

// subject is what an outcome speaks of: pods that ask for a GPU resource, all of them or
// those with the same requests.
type subject struct {
	gpu corev1.ResourceName
	// shape is zero for all.
	shape shape
}

// ends are the ends of back-offs, by node and by the API server's clock. They are never
// changed but replaced, since decisions under way read them.
type ends map[string]time.Time

// holds tells whether a node's back-off is not over.
func (e ends) holds(node string, now time.Time) bool {
	end, ok := e[node]
	return ok && now.Before(end)
}

// backoffs are the nodes that refused GPU pods.
type backoffs struct {
	cfg  config.Backoff
	gpus config.Resources
	// nodes have what is known of each.
	nodes map[string]*outcomes
	// held are the back-offs of each scope; nearly always there are none.
	held map[scope]ends
	// swept is when what is over was last taken out of all scopes.
	swept time.Time
}

func newBackoffs(cfg config.Backoff, gpus config.Resources) *backoffs {
	return &backoffs{cfg: cfg, gpus: gpus, nodes: map[string]*outcomes{}, held: map[scope]ends{}}
}

// maxSubjects is for how many GPU resources of one pod its outcome counts, the first ones by
// name. Pods ask for one, rarely for two; names are for the author to choose.
const maxSubjects = 4

// note follows what a pod shows of its node, which was created at since if that is known.
// now is by the API server's clock.
func (b *backoffs) note(pod *reduced.Pod, since, now time.Time) {
	if b.cfg.Failures == 0 || pod.Outcome == reduced.OutcomeUnknown {
		return
	}
	o := b.nodes[pod.NodeName]
	if o == nil {
		o = &outcomes{since: since}
		b.nodes[pod.NodeName] = o
	}
	at := time.Unix(pod.OutcomeAt, 0)
	if at.After(now) {
		at = now // the node's clock is ahead
	}
	if at.Before(o.since) {
		return // it speaks of a node that was there before under that name
	}
	if o.note(pod, b.subjectsOf(pod), at, b.cfg) {
		b.derive(pod.NodeName, o, now)
	}
}

// subjectsOf are the GPU resources that a pod asks for, with its shape.
func (b *backoffs) subjectsOf(pod *reduced.Pod) []subject {
	list := make([]subject, 0, maxSubjects)
	for _, a := range pod.Load.Requests {
		if len(list) < maxSubjects && b.gpus.IsGPU(string(a.Name)) {
			list = append(list, subject{a.Name, shapeOf(pod.Load.Requests)})
		}
	}
	return list
}

// derive makes the back-offs of a node say what follows from its outcomes.
//
// What is over is kept until it is swept: the clocks' difference may become known.
func (b *backoffs) derive(node string, o *outcomes, now time.Time) {
	b.sweep(now)
	next := o.backoffs(b.cfg)
	for _, s := range o.scopes {
		if _, stays := next[s]; !stays {
			b.set(s, node, time.Time{})
		}
	}
	o.scopes = o.scopes[:0]
	for s, end := range next {
		b.set(s, node, end)
		o.scopes = append(o.scopes, s)
	}
}

// set replaces a node's end in a scope; the zero time takes it out.
func (b *backoffs) set(s scope, node string, end time.Time) {
	old, has := b.held[s][node]
	if has && old.Equal(end) || !has && end.IsZero() {
		return
	}
	next := maps.Clone(b.held[s])
	if end.IsZero() {
		delete(next, node)
	} else {
		if next == nil {
			next = ends{}
		}
		next[node] = end
	}
	b.put(s, next)
}

func (b *backoffs) put(s scope, next ends) {
	if len(next) == 0 {
		delete(b.held, s)
	} else {
		b.held[s] = next
	}
}

// sweep takes out what is over, now and then.
func (b *backoffs) sweep(now time.Time) {
	if age := now.Sub(b.swept); age >= 0 && age < b.cfg.Initial.Duration {
		return
	}
	b.swept = now
	for s, old := range b.held {
		next := maps.Clone(old)
		maps.DeleteFunc(next, func(node string, _ time.Time) bool { return !old.holds(node, now) })
		b.put(s, next)
	}
}

// renew is told of a node that exists since then. What spoke of another one under its name
// is forgotten.
func (b *backoffs) renew(node string, since, now time.Time) {
	if o := b.nodes[node]; o != nil && o.forgetBefore(since) {
		b.derive(node, o, now)
	}
}

// forget drops what is known of a node.
func (b *backoffs) forget(node string) {
	if o := b.nodes[node]; o != nil {
		for _, s := range o.scopes {
			b.set(s, node, time.Time{})
		}
		delete(b.nodes, node)
	}
}

// keep drops what is known of other nodes than those that exist.
func (b *backoffs) keep(exists func(node string) bool) {
	for node := range b.nodes {
		if !exists(node) {
			b.forget(node)
		}
	}
}

// Rule says for which pods a node is in back-off. Its JSON is what explain prints.
type Rule struct {
	// Namespace: for those of the pod's namespace only; else for everybody's.
	Namespace bool `json:"namespace,omitempty"`
	// Requests: for those with the same requests only.
	Requests bool `json:"requests,omitempty"`
}

// lent are back-offs for reading.
type lent struct {
	ends
	rule Rule
}

// of returns the back-offs that a pod comes under, nil for none.
func (b *backoffs) of(namespace string, d *demand.Demand) (list []lent) {
	if len(b.held) == 0 {
		return nil
	}
	shape := shapeOf(d.Requests)
	for i := range min(len(d.GPUs), maxSubjects) {
		name := d.GPUs[i].Name
		for _, s := range [...]scope{{"", subject{name, 0}}, {namespace, subject{name, 0}}, {"", subject{name, shape}}, {namespace, subject{name, shape}}} {
			if held := b.held[s]; held != nil {
				list = append(list, lent{held, Rule{Namespace: s.namespace != "", Requests: s.shape != 0}})
			}
		}
	}
	return list
}

// everybodys returns the back-offs for everybody, for reading, by GPU resource.
func (b *backoffs) everybodys() map[corev1.ResourceName]ends {
	var all map[corev1.ResourceName]ends
	for s, held := range b.held {
		if s.namespace == "" && s.shape == 0 {
			if all == nil {
				all = map[corev1.ResourceName]ends{}
			}
			all[s.gpu] = held
		}
	}
	return all
}

// count is how many nodes are in back-off for everybody, and how many others are for the
// pods of a namespace.
func (b *backoffs) count(now time.Time) (everybody, namespace int) {
	out := map[string]bool{} // node -> for everybody
	for s, held := range b.held {
		for node := range held {
			if s.shape == 0 && held.holds(node, now) {
				out[node] = out[node] || s.namespace == ""
			}
		}
	}
	for _, all := range out {
		if all {
			everybody++
		} else {
			namespace++
		}
	}
	return everybody, namespace
}
