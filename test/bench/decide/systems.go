package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// system decides where a pod goes; empty for nowhere. It leaves no trace of the
// decision.
type system interface {
	decide(pod *corev1.Pod) string
}

// ours is the product.
type ours struct {
	index  *scoring.Index
	scorer *scoring.Scorer
	// over ends reservations: the pod appears and is over already.
	over  *corev1.Pod
	count int
}

func newOurs(s *shape, nodes int) (*ours, error) {
	cfg := config.Default()
	index, err := scoring.NewIndex(cfg, nil)
	if err != nil {
		return nil, err
	}
	index.SetNamespace(namespace, true)
	for i := range nodes {
		index.SetNode(s.node(i))
		s.pods(i, index.SetPod)
	}
	index.SetSynced()
	over := newPod("1", "1Gi")
	over.Status.Phase = corev1.PodSucceeded
	over.Annotations = map[string]string{}
	return &ours{index: index, scorer: scoring.NewScorer(cfg, index), over: over}, nil
}

// decide decides, reserves and takes the reservation back.
func (o *ours) decide(pod *corev1.Pod) string {
	o.count++
	uid := types.UID(strconv.Itoa(o.count))
	d := o.scorer.Decide(context.Background(), scoring.Request{Pod: pod, Namespace: namespace, UID: uid})
	o.over.UID, o.over.Annotations[config.AnnotationAdmission] = uid, string(uid)
	o.index.SetPod(o.over)
	return d.Target()
}

// naive does what a webhook without an index does for each request: it adds up the
// GPUs of all pods by node and scores all nodes, by 100*allocated/allocatable.
type naive struct {
	nodes []*corev1.Node
	pods  []*corev1.Pod
}

func newNaive(s *shape, nodes int) *naive {
	n := &naive{}
	for i := range nodes {
		n.nodes = append(n.nodes, s.node(i))
		s.pods(i, func(p *corev1.Pod) { n.pods = append(n.pods, p.DeepCopy()) })
	}
	return n
}

func (n *naive) decide(pod *corev1.Pod) string {
	used := map[string]int64{}
	for _, p := range n.pods {
		if p.Status.Phase == corev1.PodRunning {
			used[p.Spec.NodeName] += gpusOf(p)
		}
	}
	best, bestScore := "", int64(-1)
	for _, node := range n.nodes {
		if selector := pod.Spec.NodeSelector["pool"]; selector != "" && node.Labels["pool"] != selector {
			continue
		}
		allocatable := node.Status.Allocatable.Name(gpu, "").Value()
		if allocatable-used[node.Name] < gpusOf(pod) {
			continue
		}
		if score := scoring.OriginScore(used[node.Name], allocatable); score > bestScore {
			best, bestScore = node.Name, score
		}
	}
	return best
}

func gpusOf(pod *corev1.Pod) int64 {
	var sum int64
	for i := range pod.Spec.Containers {
		sum += pod.Spec.Containers[i].Resources.Requests.Name(gpu, "").Value()
	}
	return sum
}

// checkTarget returns an error when a node is the wrong answer. All answers that
// leave equally many GPUs are right.
func (s *shape) checkTarget(target string) error {
	if s.nothingFits != (target == "") {
		return fmt.Errorf("target %q, nothing fits is %v", target, s.nothingFits)
	}
	if target == "" {
		return nil
	}
	var i int
	if _, err := fmt.Sscanf(target, "node-%d", &i); err != nil {
		return fmt.Errorf("target %q: %w", target, err)
	}
	if s.selector != "" && s.pool(i) != s.selector {
		return fmt.Errorf("target %s is in pool %s", target, s.pool(i))
	}
	if s.gpus(i)-s.used(i) < 1 {
		return fmt.Errorf("target %s is full", target)
	}
	return nil
}
