package explain

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Every kind that makes pods gives the pod that its controller would create.
func TestPodFromFile(t *testing.T) {
	const spec = "{containers: [{name: a, image: i, resources: {limits: {nvidia.com/gpu: 1}}}]}"
	const template = "{metadata: {labels: {app: x}}, spec: " + spec + "}"
	for kind, tc := range map[string]struct{ spec, owner string }{
		"Pod":         {spec, ""},
		"Deployment":  {"{template: " + template + "}", "ReplicaSet"},
		"ReplicaSet":  {"{template: " + template + "}", "ReplicaSet"},
		"StatefulSet": {"{template: " + template + "}", "StatefulSet"},
		"DaemonSet":   {"{template: " + template + "}", "DaemonSet"},
		"Job":         {"{template: " + template + "}", "Job"},
		"CronJob":     {"{jobTemplate: {spec: {template: " + template + "}}}", "Job"},
	} {
		t.Run(kind, func(t *testing.T) {
			text := "apiVersion: " + podKinds[kind] + "\nkind: " + kind + "\nmetadata: {name: x, namespace: team-a}\nspec: " + tc.spec + "\n"
			s, err := FromFile("x.yaml", []byte(text), config.Default().Resources)
			if err != nil {
				t.Fatal(err)
			}
			pod := s.Pod
			if s.Source != kind+" x in x.yaml" || pod.Namespace != "team-a" || len(pod.Spec.Containers) != 1 {
				t.Errorf("%s: pod %+v", s.Source, pod)
			}
			if kind == "Pod" {
				if pod.Name != "x" || len(pod.OwnerReferences) > 0 {
					t.Errorf("pod %+v", pod.ObjectMeta)
				}
				return
			}
			owner := metav1.GetControllerOf(pod)
			if pod.Name != "" || pod.GenerateName != "x-" || pod.Labels["app"] != "x" || owner == nil || owner.Kind != tc.owner {
				t.Errorf("pod %+v", pod.ObjectMeta)
			}
		})
	}
}

// What kubectl get prints for several objects is a List.
func TestPodFromList(t *testing.T) {
	const list = `{"apiVersion": "v1", "kind": "List", "items": [
		{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
		{"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "x-"}, "spec": {"containers": [{"name": "a"}]}}]}`
	s, err := FromFile("x.yaml", []byte(list), config.Default().Resources)
	if err != nil {
		t.Fatal(err)
	}
	if s.Pod.GenerateName != "x-" || s.Source != "Pod x-* in x.yaml" {
		t.Errorf("%s: %+v", s.Source, s.Pod.ObjectMeta)
	}
}
