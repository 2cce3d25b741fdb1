package agreement

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/test/agreement/cluster"
)

// newProduct builds our index and scorer at the time of the random clusters.
func newProduct(t testing.TB, cfg config.Configuration, nodes []*corev1.Node, pods []*corev1.Pod) *cluster.Product {
	t.Helper()
	return cluster.NewProduct(t, cfg, func() time.Time { return cluster.Start }, nodes, pods)
}

// stored returns the pod as the API server stores it after our webhook, with the
// decision on it and defaults filled in: what the scheduler sees.
func stored(pod *corev1.Pod, d scoring.Decision) *corev1.Pod {
	pod = cluster.Steered(pod, d)
	corev1defaults.SetObjectDefaults_Pod(pod)
	return pod
}
