package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// policy is what an administrator may put on a namespace, and what then refuses
// pods.
type policy struct {
	labels map[string]string
	object client.Object
	// refuses is a pod of policyPods that it refuses; "" for a policy that only a
	// pod changed by us could break.
	refuses string
	// steering is what it makes of pods that would be steered otherwise without it.
	steering map[string]string
}

const policyPriority = "policies"

// policies are a ResourceQuota of every scope, with room for no pod in the scope,
// other quotas, LimitRanges, and the levels of Pod Security.
func policies() map[string]policy {
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	exists := func(scope corev1.ResourceQuotaScope) *corev1.ResourceQuota {
		return quota(none, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	claims := corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("0")}
	level := func(l api.Level) map[string]string { return map[string]string{api.EnforceLevelLabel: string(l)} }
	return map[string]policy{
		"terminating":     {object: exists(corev1.ResourceQuotaScopeTerminating), refuses: "deadline"},
		"not-terminating": {object: exists(corev1.ResourceQuotaScopeNotTerminating), refuses: "ranked"},
		"best-effort":     {object: exists(corev1.ResourceQuotaScopeBestEffort), refuses: "only-gpus"},
		"not-best-effort": {object: exists(corev1.ResourceQuotaScopeNotBestEffort), refuses: "ranked"},
		"cross-namespace": {object: exists(corev1.ResourceQuotaScopeCrossNamespacePodAffinity), refuses: "cross-namespace"},
		"priority-class": {object: quota(none, corev1.ScopedResourceSelectorRequirement{
			ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{policyPriority},
		}), refuses: "priority"},
		"volume-attributes-class": {object: quota(claims, corev1.ScopedResourceSelectorRequirement{
			ScopeName: corev1.ResourceQuotaScopeVolumeAttributesClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"fast"},
		})},
		"gpus": {object: quota(corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("9")}), refuses: "many-gpus"},
		"compute": {object: quota(corev1.ResourceList{
			corev1.ResourceLimitsCPU: resource.MustParse("12"), corev1.ResourceRequestsCPU: resource.MustParse("12"),
		}), refuses: "only-gpus"},
		"limit-range": {object: limitRange(nil), refuses: "ratio"},
		// A maximum is also the default: a pod without GPUs becomes one with eight.
		"limit-range-gpus": {
			object: limitRange(corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}), refuses: "late",
			steering: map[string]string{"no-gpus": config.SteeringRanked},
		},
		"privileged": {labels: level(api.LevelPrivileged)},
		"baseline":   {labels: level(api.LevelBaseline), refuses: "host-network"},
		"restricted": {labels: level(api.LevelRestricted), refuses: "ranked"},
	}
}

func quota(hard corev1.ResourceList, scopes ...corev1.ScopedResourceSelectorRequirement) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "policy"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	if len(scopes) > 0 {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: scopes}
	}
	return q
}

// limitRange has defaults for what a container leaves out, and limits.
func limitRange(most corev1.ResourceList) *corev1.LimitRange {
	cpu := func(value string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(value)}
	}
	return &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "policy"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
		{Type: corev1.LimitTypeContainer, Default: cpu("4"), DefaultRequest: cpu("1"), Min: cpu("100m"), Max: most, MaxLimitRequestRatio: cpu("4")},
		{Type: corev1.LimitTypePod, Max: cpu("16")},
	}}}
}

// policyPod is a pod and what steering it gets where it may be created.
type policyPod struct {
	pod      *corev1.Pod
	steering string
}

// policyPods are pods of every kind that a policy may look at, ranked, late and
// left alone.
func policyPods() map[string]policyPod {
	pods := map[string]policyPod{
		"spread":          {pod: with(gpuPod(1), spread)},
		"gated":           {pod: with(gpuPod(1), func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}} })},
		"other-scheduler": {pod: with(gpuPod(1), func(p *corev1.Pod) { p.Spec.SchedulerName = "volcano" })},
		"no-gpus":         {pod: gpuPod(0)},
	}
	// Each kind once for a pod that something fits and once for one that nothing does.
	for name, change := range map[string]func(*corev1.Pod){
		"": func(*corev1.Pod) {},
		"only-gpus": func(p *corev1.Pod) { // so of QoS class BestEffort
			delete(p.Spec.Containers[0].Resources.Limits, corev1.ResourceCPU)
		},
		"deadline":     func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](60) },
		"priority":     func(p *corev1.Pod) { p.Spec.PriorityClassName = policyPriority },
		"restricted":   restricted,
		"host-network": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"ratio": func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		},
	} {
		ranked, late := with(gpuPod(1), change), with(gpuPod(9), change)
		if name == "" {
			pods["ranked"], pods["late"] = policyPod{ranked, config.SteeringRanked}, policyPod{late, config.SteeringLate}
			continue
		}
		pods[name], pods[name+"-late"] = policyPod{ranked, config.SteeringRanked}, policyPod{late, config.SteeringLate}
	}
	pods["many-gpus"] = policyPod{gpuPod(16), config.SteeringLate}
	pods["cross-namespace"] = policyPod{with(gpuPod(1), func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{crossNamespace},
		}}
	}), config.SteeringRanked}
	return pods
}

// restricted makes a pod that the level restricted lets pass.
func restricted(p *corev1.Pod) {
	p.Spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

// policedNamespaces creates two namespaces with the policy, the first opted in.
func policedNamespaces(t *testing.T, name string, p policy) [2]string {
	t.Helper()
	var namespaces [2]string
	for i, prefix := range [2]string{"policy-" + name + "-with", "policy-" + name + "-without"} {
		labels := map[string]string{config.LabelEnabled: fmt.Sprint(i == 0)}
		for key, value := range p.labels {
			labels[key] = value
		}
		namespace, err := cluster.GenerateNamespace(t.Context(), prefix, labels)
		if err != nil {
			t.Fatal(err)
		}
		namespaces[i] = namespace
		if p.object != nil {
			object := p.object.DeepCopyObject().(client.Object)
			object.SetNamespace(namespace)
			if err := cluster.Client().Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			err := cluster.Client().DeleteAllOf(context.WithoutCancel(t.Context()), &corev1.Pod{}, client.InNamespace(namespace), client.GracePeriodSeconds(0))
			if err != nil {
				t.Error(err)
			}
		})
		waitForPolicy(t, namespace, p)
	}
	return namespaces
}

// waitForPolicy waits until the policy is in force: the admission plugins read
// from caches, and of a quota what the controller has counted.
func waitForPolicy(t *testing.T, namespace string, p policy) {
	t.Helper()
	if q, ok := p.object.(*corev1.ResourceQuota); ok {
		counted := &corev1.ResourceQuota{}
		eventually(t, "waiting for the quota controller", func(ctx context.Context) (bool, error) {
			err := cluster.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: q.Name}, counted)
			return len(counted.Status.Hard) > 0, err
		})
	}
	if p.refuses == "" {
		return
	}
	eventually(t, "the policy refusing "+p.refuses, func(ctx context.Context) (bool, error) {
		_, refusal := try(ctx, namespace, p.refuses, policyPods()[p.refuses].pod, client.DryRunAll)
		return refusal != "", nil
	})
}

// try creates the pod and returns it as it is stored, or why it is refused, in
// words without the name of the namespace.
func try(ctx context.Context, namespace, name string, pod *corev1.Pod, options ...client.CreateOption) (*corev1.Pod, string) {
	pod = pod.DeepCopy()
	pod.Namespace, pod.Name = namespace, name
	if err := cluster.Client().Create(ctx, pod, options...); err != nil {
		return nil, strings.ReplaceAll(err.Error(), namespace, "NAMESPACE")
	}
	return pod, ""
}

// Policies come to the same verdict, in the same words, whether the namespace has
// opted in or not: whatever we add to a pod is nothing that any of them counts,
// limits or forbids.
func TestPoliciesRefuseNoPodBecauseOfUs(t *testing.T) {
	withNodes(t, controlplane.Nodes("policies", 2, node8))
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: policyPriority}, Value: 1}
	if err := cluster.Client().Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Client().Delete(context.WithoutCancel(t.Context()), class); err != nil {
			t.Error(err)
		}
	})
	for name, p := range policies() {
		t.Run(name, func(t *testing.T) {
			namespaces := policedNamespaces(t, name, p)
			accepted := 0
			for podName, each := range policyPods() {
				pod, refusal := try(t.Context(), namespaces[0], podName, each.pod, client.DryRunAll)
				_, without := try(t.Context(), namespaces[1], podName, each.pod, client.DryRunAll)
				if refusal != without {
					t.Errorf("%s: with us %q, without %q", podName, refusal, without)
				}
				if pod == nil {
					continue
				}
				accepted++
				want, ok := p.steering[podName]
				if !ok {
					want = each.steering
				}
				if got := pod.Annotations[config.AnnotationSteering]; got != want {
					t.Errorf("%s: steering %q, want %q", podName, got, want)
				}
			}
			if accepted == 0 {
				t.Error("no pod was accepted")
			}
		})
	}
}

// The same for pods that are stored, one after another, until a quota is used up.
func TestQuotaIsUsedUpAsWithoutUs(t *testing.T) {
	withNodes(t, controlplane.Nodes("used-up", 2, node8))
	namespaces := policedNamespaces(t, "used-up", policy{object: quota(corev1.ResourceList{
		"count/pods": resource.MustParse("4"), "requests.nvidia.com/gpu": resource.MustParse("12"),
	}), refuses: "many-gpus"})
	refused := 0
	for i, gpus := range []int64{1, 9, 8, 0, 2, 1, 1} { // 1+9+2 are 12; the pods 1, 9, 0, 2 are 4
		name := fmt.Sprintf("pod-%d", i)
		_, refusal := try(t.Context(), namespaces[0], name, gpuPod(gpus))
		_, without := try(t.Context(), namespaces[1], name, gpuPod(gpus))
		if refusal != without {
			t.Errorf("pod %d with %d GPUs: with us %q, without %q", i, gpus, refusal, without)
		}
		if refusal != "" {
			refused++
		}
	}
	if refused != 3 {
		t.Errorf("%d pods refused, want 3", refused)
	}
}
