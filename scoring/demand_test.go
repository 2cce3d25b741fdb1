package scoring

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-binpacker/gpu-binpacker/config"
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
	one, two := list(nvidia, "1"), list(nvidia, "2")
	tests := map[string]struct {
		spec       corev1.PodSpec
		want       []GPURequest
		wantReason Reason
	}{
		"limits only": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(two)}},
			want: []GPURequest{{nvidia, 2}},
		},
		"sum of containers": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(one), container(two)}},
			want: []GPURequest{{nvidia, 3}}, // 1+2
		},
		"init containers and a sidecar": {
			spec: corev1.PodSpec{
				InitContainers: []corev1.Container{container(one), sidecar(one), container(two)},
				Containers:     []corev1.Container{container(one)},
			},
			want: []GPURequest{{nvidia, 3}}, // max(containers 1 + sidecar 1, ic1 1, sidecar 1 + ic2 2)
		},
		"only in an init container": {
			spec: corev1.PodSpec{InitContainers: []corev1.Container{container(two)}, Containers: []corev1.Container{{}}},
			want: []GPURequest{{nvidia, 2}},
		},
		"two names": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "1", mig, "2"))}},
			want: []GPURequest{{nvidia, 1}, {mig, 2}},
		},
		"whole number in milli": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "1000m"))}},
			want: []GPURequest{{nvidia, 1}},
		},
		"thousand": {
			spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "1k"))}},
			want: []GPURequest{{nvidia, 1000}},
		},
		"none":     {spec: corev1.PodSpec{Containers: []corev1.Container{container(list("cpu", "1"))}}, wantReason: ReasonNoGPU},
		"zero":     {spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "0"))}}, wantReason: ReasonNoGPU},
		"negative": {spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "-1"))}}, wantReason: ReasonInvalidRequest},
		"half":     {spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "500m"))}}, wantReason: ReasonInvalidRequest},
		"two halves": {
			spec:       corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "500m")), container(list(nvidia, "500m"))}},
			wantReason: ReasonInvalidRequest,
		},
		"one and a half": {spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "1500m"))}}, wantReason: ReasonInvalidRequest},
		"largest int64":  {spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "9223372036854775807"))}}, wantReason: ReasonInvalidRequest},
		"beyond int64":   {spec: corev1.PodSpec{Containers: []corev1.Container{container(list(nvidia, "1e30"))}}, wantReason: ReasonInvalidRequest},
		"other scheme":   {spec: corev1.PodSpec{Containers: []corev1.Container{container(list("koordinator.sh/gpu.shared", "4"))}}, wantReason: ReasonNoGPU},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: tc.spec}
			before := pod.DeepCopy()
			d, reason := NewDemand(pod, config.Default().Resources)
			if reason != tc.wantReason {
				t.Fatalf("reason %q, want %q", reason, tc.wantReason)
			}
			if diff := cmp.Diff(tc.want, d.GPUs); reason == ReasonNone && diff != "" {
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
		container(list(nvidia, "1")),
		container(list("cpu", "2", "memory", "1Gi")),
	}}}
	d, _ := NewDemand(pod, config.Default().Resources)
	if d.scoringCPU != 2100 || d.scoringMemory != 1<<30+200<<20 {
		t.Errorf("scoring %dm and %d bytes, want 2100m and 1Gi+200Mi", d.scoringCPU, d.scoringMemory)
	}
	if cpu := d.requests.get("cpu"); cpu != 2000 {
		t.Errorf("requests %dm, want 2000m", cpu)
	}
}

func TestAmountOf(t *testing.T) {
	tests := map[string]struct {
		name corev1.ResourceName
		q    string
		want int64
	}{
		"cpu":             {"cpu", "1500m", 1500},
		"cpu rounds up":   {"cpu", "100u", 1},
		"huge cpu":        {"cpu", "1e15", maxAmount},
		"memory":          {"memory", "1152Gi", 1152 << 30},
		"memory rounds":   {"memory", "1500m", 2},
		"huge memory":     {"memory", "1e30", maxAmount},
		"negative memory": {"memory", "-5", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := amountOf(tc.name, resource.MustParse(tc.q)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAmountsPlus(t *testing.T) {
	a := amounts{{"a", 1}, {"c", 3}}
	b := amounts{{"a", 1}, {"b", 2}}
	if diff := cmp.Diff(amounts{{"a", 2}, {"b", 2}, {"c", 3}}, a.plus(1, b), cmp.AllowUnexported(amount{})); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
	// Zero disappears; below zero stays visible.
	if diff := cmp.Diff(amounts{{"b", -2}, {"c", 3}}, a.plus(-1, b), cmp.AllowUnexported(amount{})); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}
