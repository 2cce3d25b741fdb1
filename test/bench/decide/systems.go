package main

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
)

// system decides where a pod goes; empty for nowhere. It leaves no trace of the
// decision.
type system interface {
	Decide(pod *corev1.Pod) string
}

// ours is the product.
type ours struct {
	ix     *index.Index
	scorer *scoring.Scorer
	// over ends reservations: the pod appears and is over already.
	over  *corev1.Pod
	count int
}

func newOurs(s *cluster.Shape, nodes int) (*ours, error) {
	cfg := config.Default()
	ix, err := index.New(cfg, nil)
	if err != nil {
		return nil, err
	}
	ix.SetNamespace(cluster.Namespace, true)
	for i := range nodes {
		ix.SetNode(s.Node(i))
		s.Pods(i, ix.SetPod)
	}
	ix.SetSynced()
	over := cluster.NewPod("1", "1Gi")
	over.Status.Phase = corev1.PodSucceeded
	over.Annotations = map[string]string{}
	return &ours{ix: ix, scorer: scoring.NewScorer(cfg, ix), over: over}, nil
}

// Decide decides, reserves and takes the reservation back.
func (o *ours) Decide(pod *corev1.Pod) string {
	o.count++
	uid := types.UID(strconv.Itoa(o.count))
	d := o.scorer.Decide(context.Background(), scoring.Request{Pod: pod, Namespace: cluster.Namespace, UID: uid})
	o.over.UID, o.over.Annotations[config.AnnotationAdmission] = uid, string(uid)
	o.ix.SetPod(o.over)
	return d.Target()
}
