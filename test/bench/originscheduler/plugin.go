package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
)

// pluginName is the plugin's name in a scheduler profile.
const pluginName = "OriginBinPacking"

// gpuNames are the resource names that count as GPUs here.
var gpuNames = []corev1.ResourceName{"nvidia.com/gpu", "amd.com/gpu"}

// plugin scores a node by how much of its GPUs is allocated already. It filters
// nothing.
type plugin struct{}

var _ fwk.ScorePlugin = plugin{}

// newPlugin is the plugin's factory.
func newPlugin(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return plugin{}, nil
}

// Name implements Plugin.
func (plugin) Name() string { return pluginName }

// Score implements ScorePlugin: 100 * allocated / allocatable of the GPU resource
// that the pod asks for, before placement, where allocated is the sum of what the
// node's pods request. Of several resources the tightest counts. A pod without
// GPUs, and a node without that resource, score 0.
func (plugin) Score(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	requests := resource.PodRequests(pod, resource.PodResourcesOptions{})
	allocated, allocatable := node.GetRequested().GetScalarResources(), node.GetAllocatable().GetScalarResources()
	var score int64
	for _, name := range gpuNames {
		if quantity, ok := requests[name]; ok && !quantity.IsZero() {
			score = max(score, nodeScore(allocated[name], allocatable[name]))
		}
	}
	return score, nil
}

// nodeScore is 100 * allocated / allocatable, within 0 and 100.
func nodeScore(allocated, allocatable int64) int64 {
	if allocatable <= 0 {
		return 0
	}
	return fwk.MaxScore * min(max(allocated, 0), allocatable) / allocatable
}

// ScoreExtensions implements ScorePlugin: scores are in range as they are.
func (plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }
