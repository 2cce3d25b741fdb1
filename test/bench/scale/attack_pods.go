package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
)

const (
	// boundPods stay on nodes with as many resources of their own as count, forgedPods wait
	// with forged lists.
	boundPods, forgedPods = 10_000, 3_000
	// resourcesOfPod and listOfPod are what each of these has.
	resourcesOfPod, listOfPod = 22, 64
	// manyResources and annotationBytes are what pods have that come and go.
	manyResources, annotationBytes = 20_000, 250 << 10
	hostileNamespace               = "hostile"
)

// fillIndex creates pods that stay in the index.
func (a *attacked) fillIndex(ctx context.Context, b *bed) error {
	for i := range boundPods + forgedPods {
		pod := forgedPod(i)
		if i < boundPods {
			pod = boundPod(i, resourcesOfPod, i%b.contents.nodes)
		}
		if err := errors.Join(ctx.Err(), b.api.Set(pod)); err != nil {
			return err
		}
		a.hostile.Add(1)
	}
	return nil
}

// churnPods creates pods that come and go until the context ends.
func (a *attacked) churnPods(ctx context.Context, b *bed) error {
	for i := 0; ctx.Err() == nil; i++ {
		pod := hostilePod(i + boundPods + forgedPods)
		if i%10 == 0 {
			pod = boundPod(i+boundPods+forgedPods, manyResources, i%b.contents.nodes)
		} else {
			pod.Annotations = map[string]string{config.AnnotationSteering: strings.Repeat(fmt.Sprintf("%08d", i), annotationBytes/8)}
		}
		if err := b.api.Set(pod); err != nil {
			return err
		}
		if err := b.api.Delete(pod); err != nil {
			return err
		}
		a.hostile.Add(1)
		_ = sleep(ctx, victimPause)
	}
	return nil
}

func hostilePod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: hostileNamespace, Name: fmt.Sprintf("hostile-%d", i), UID: types.UID(fmt.Sprintf("5f2f1f6a-1c3b-4a52-9a51-%012d", i)),
			CreationTimestamp: metav1.Now(),
		},
		Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}},
		}}},
	}
}

// boundPod is on a node and asks for resources that nobody else asks for.
func boundPod(i, resources, node int) *corev1.Pod {
	pod := hostilePod(i)
	pod.Spec.NodeName = cluster.NodeName(node)
	for j := range resources {
		pod.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("attack-%07d.example.com/resource-%07d", i, j))] = resource.MustParse("1")
	}
	return pod
}

// forgedPod looks as if it were on its way to one of many nodes that do not exist.
func forgedPod(i int) *corev1.Pod {
	pod := hostilePod(i)
	pod.Namespace = cluster.Namespace
	target := cluster.NodeName(i % 7)
	pod.Annotations = map[string]string{config.AnnotationSteering: config.SteeringRanked, config.AnnotationTarget: target}
	var terms []corev1.PreferredSchedulingTerm
	for j := range listOfPod {
		name := fmt.Sprintf("%s-%07d-%03d", strings.Repeat("x", 200), i, j)
		if j == 0 {
			name = target
		}
		terms = append(terms, corev1.PreferredSchedulingTerm{Weight: 1, Preference: corev1.NodeSelectorTerm{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
		}})
	}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: terms}}
	return pod
}
