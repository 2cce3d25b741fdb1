package state

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// overPod is a pod that is over, with what its container says.
func overPod(name, node string, at time.Time, s corev1.ContainerState) corev1.Pod {
	pod := gpuPod(name, node, "1")
	pod.UID, pod.CreationTimestamp = types.UID(name), metav1.NewTime(at)
	pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Message: "canary", ContainerStatuses: []corev1.ContainerStatus{{Name: "acme-train", State: s}}}
	return pod
}

func terminated(reason string, startedAt, finishedAt time.Time) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		Reason: reason, Message: "canary", ExitCode: 1, StartedAt: metav1.NewTime(startedAt), FinishedAt: metav1.NewTime(finishedAt),
	}}
}

// A state tells of nodes that refuse pods what the webhook knows, also from a file and with
// hashed names, and leaves out all other pods that are over.
func TestOver(t *testing.T) {
	at := taken.Add(-10 * time.Second)
	refused := func(name string) corev1.Pod {
		return overPod(name, "acme-n1", at, terminated("StartError", time.Unix(0, 0), at))
	}
	ran := func(name, node string, at time.Time) corev1.Pod {
		return overPod(name, node, at, terminated("Completed", at, at))
	}
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		kept int
		out  bool
	}{
		"two":                       {[]corev1.Pod{refused("a"), refused("b")}, 2, false},
		"three":                     {[]corev1.Pod{refused("a"), refused("b"), refused("c")}, 3, true},
		"others ran there before":   {[]corev1.Pod{ran("x", "acme-n1", at.Add(-time.Minute)), refused("a"), refused("b"), refused("c")}, 4, true},
		"one ran there since":       {[]corev1.Pod{refused("a"), refused("b"), refused("c"), ran("x", "acme-n1", at.Add(time.Second))}, 4, false},
		"they ran on a decent node": {[]corev1.Pod{ran("x", "n2", at), ran("y", "n2", at)}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			running := gpuPod("acme-pod", "acme-n1", "3")
			running.CreationTimestamp = metav1.NewTime(at.Add(-time.Hour))
			s := New(taken, []string{"acme-ml"}, []corev1.Node{gpuNode("n2"), gpuNode("acme-n1")}, append(tc.pods, running))
			if len(s.Over) != tc.kept || len(s.Pods) != 1 {
				t.Errorf("%d pods that are over and %d others, want %d and 1", len(s.Over), len(s.Pods), tc.kept)
			}
			hashed, err := s.Hash()
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if err := hashed.Save("-", &file); err != nil {
				t.Fatal(err)
			}
			if text := file.String(); strings.Contains(text, "canary") || strings.Contains(text, "acme") {
				t.Errorf("names or messages are in the file:\n%s", text)
			}
			read, err := Load("-", &file)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []*State{s, read} {
				ix, err := s.Index(config.Default())
				if err != nil {
					t.Fatal(err)
				}
				pod := gpuPod("new", "", "1")
				pod.Spec.NodeSelector = nil
				e := scoring.NewScorer(config.Default(), ix).Explain(t.Context(), scoring.Request{Pod: &pod, Namespace: s.EnabledNamespaces[0]})
				if got := fmt.Sprint(len(e.LeftOut) == 1 && e.LeftOut[0].Backoff != nil && e.LeftOut[0].Backoff.Namespace); got != fmt.Sprint(tc.out) {
					t.Errorf("out for the namespace: %s, want %v; left out %+v", got, tc.out, e.LeftOut)
				}
			}
		})
	}
}
