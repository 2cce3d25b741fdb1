package demand_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/clustertest"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

func container(resources corev1.ResourceList) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Limits: resources}}
}

func sidecar(resources corev1.ResourceList) corev1.Container {
	always := corev1.ContainerRestartPolicyAlways
	c := container(resources)
	c.RestartPolicy = &always
	return c
}

func TestNewDemand(t *testing.T) {
	one, two := clustertest.List(clustertest.NVIDIA, "1"), clustertest.List(clustertest.NVIDIA, "2")
	tests := map[string]struct {
		spec       corev1.PodSpec
		want       []demand.GPURequest
		wantReason steering.Reason
	}{
		"limits only": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(two)}},
			want: []demand.GPURequest{{clustertest.NVIDIA, 2}},
		},
		"sum of containers": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(one), container(two)}},
			want: []demand.GPURequest{{clustertest.NVIDIA, 3}}, // 1+2
		},
		"init containers and a sidecar": {
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container(one), sidecar(one), container(two)},
				Containers:     []corev1.Container{container(one)},
			},
			want: []demand.GPURequest{{clustertest.NVIDIA, 3}}, // max(containers 1 + sidecar 1, ic1 1, sidecar 1 + ic2 2)
		},
		"only in an init container": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{container(two)}, Containers: []corev1.Container{{}}},
			want: []demand.GPURequest{{clustertest.NVIDIA, 2}},
		},
		"two names": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "1", clustertest.MIG, "2"))}},
			want: []demand.GPURequest{{clustertest.NVIDIA, 1}, {clustertest.MIG, 2}},
		},
		"whole number in milli": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "1000m"))}},
			want: []demand.GPURequest{{clustertest.NVIDIA, 1}},
		},
		"thousand": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "1k"))}},
			want: []demand.GPURequest{{clustertest.NVIDIA, 1000}},
		},
		"none":     {spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List("cpu", "1"))}}, wantReason: steering.ReasonNoGPU},
		"zero":     {spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "0"))}}, wantReason: steering.ReasonNoGPU},
		"negative": {spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "-1"))}}, wantReason: steering.ReasonInvalidRequest},
		"half":     {spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "500m"))}}, wantReason: steering.ReasonInvalidRequest},
		"two halves": {
			spec:       corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "500m")), container(clustertest.List(clustertest.NVIDIA, "500m"))}},
			wantReason: steering.ReasonInvalidRequest,
		},
		"one and a half": {spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "1500m"))}}, wantReason: steering.ReasonInvalidRequest},
		"largest int64":  {spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "9223372036854775807"))}}, wantReason: steering.ReasonInvalidRequest},
		"beyond int64":   {spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List(clustertest.NVIDIA, "1e30"))}}, wantReason: steering.ReasonInvalidRequest},
		"other scheme":   {spec: corev1.PodSpec{Containers: []corev1.Container{container(clustertest.List("koordinator.sh/gpu.shared", "4"))}}, wantReason: steering.ReasonNoGPU},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: tc.spec}
			before := pod.DeepCopy()
			d, reason := demand.Of(pod, config.Default().Resources)
			if reason != tc.wantReason {
				t.Fatalf("reason %q, want %q", reason, tc.wantReason)
			}
			if diff := cmp.Diff(tc.want, d.GPUs); reason == steering.ReasonNone && diff != "" {
				t.Errorf("GPUs (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, pod); diff != "" {
				t.Errorf("the pod was changed:\n%s", diff)
			}
		})
	}
}

// The scheduler's scoring counts 100m and 200Mi for a container that states
// neither; its filter counts nothing.
func TestDemandOfContainersWithoutRequests(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		container(clustertest.List(clustertest.NVIDIA, "1")),
		container(clustertest.List("cpu", "2", "memory", "1Gi")),
	}}}
	d, _ := demand.Of(pod, config.Default().Resources)
	if d.ScoringCPU != 2100 || d.ScoringMemory != 1<<30+200<<20 {
		t.Errorf("scoring %dm and %d bytes, want 2100m and 1Gi+200Mi", d.ScoringCPU, d.ScoringMemory)
	}
	if cpu := d.Requests.Get("cpu"); cpu != 2000 {
		t.Errorf("requests %dm, want 2000m", cpu)
	}
}
