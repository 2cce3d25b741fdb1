package check

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// namespaceCases are the 4xx.
func namespaceCases() map[string]broken {
	return map[string]broken{
		"none opted in": {"GB401", func(_ *testing.T, b *bed) {
			b.namespaces = nil
		}, Warning, "none", "kubectl label namespace NAMESPACE"},
		"GPU pods are counted": {"GB401", func(_ *testing.T, b *bed) {
			b.namespace("empty", "true")
			b.pod("cpu", "cpu")
			b.pod("done", "nvidia.com/gpu", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		}, OK, "2 namespaces with 1 GPU pod: empty (0), team-a (1)", ""},
		"pods not readable": {"GB401", func(_ *testing.T, b *bed) {
			b.denied = map[string]bool{"list pods": true}
		}, OK, "1 namespace: team-a", ""},
		"excluded": {"GB402", func(_ *testing.T, b *bed) {
			b.namespace("kube-system", "true")
		}, Warning, "excludes kube-system", "kubectl label namespace kube-system gpu-binpacker.io/enabled-"},
		"misspelt": {"GB402", func(_ *testing.T, b *bed) {
			b.namespace("team-b", "yes")
		}, Warning, `team-b ("yes")`, "gpu-binpacker.io/enabled=true --overwrite"},
		"opted out": {"GB402", func(_ *testing.T, b *bed) { b.namespace("team-b", "false") }, OK, "all 2", ""},
		"no GPU nodes": {"GB403", func(_ *testing.T, b *bed) {
			b.nodes = nil
		}, Warning, "none of 0 nodes", "kubectl describe nodes"},
		"device plugin is down": {"GB403", func(_ *testing.T, b *bed) {
			b.nodes = nil
			b.node("n", map[string]string{"nvidia.com/gpu": "0"})
		}, Warning, "none of 1 node offers", "kubectl describe nodes"},
		"two names": {"GB403", func(_ *testing.T, b *bed) {
			b.node("n", map[string]string{"nvidia.com/mig-1g.5gb": "7"})
		}, OK, "16 nvidia.com/gpu on 2 nodes, 7 nvidia.com/mig-1g.5gb on 1 node", ""},
		"name not configured": {"GB404", func(_ *testing.T, b *bed) {
			b.node("n", map[string]string{"example.com/npu": "8"})
			b.pod("p", "example.com/npu")
		}, Warning, "example.com/npu (1 pod)", "  - aws.amazon.com/neurondevice\n  - example.com/npu"},
		"no accelerators": {"GB404", func(_ *testing.T, b *bed) {
			offerAndAsk(b, "rdma/hca", "smarter-devices/fuse", "example.com/gpumem", "gpu.intel.com/i915_monitoring")
		}, OK, "no others", ""},
		"offered by no node": {"GB404", func(_ *testing.T, b *bed) { b.pod("p", "example.com/npu") }, OK, "no others", ""},
		"asked for elsewhere": {"GB404", func(_ *testing.T, b *bed) {
			b.node("n", map[string]string{"example.com/npu": "8"})
			b.pod("p", "example.com/npu", func(p *corev1.Pod) { p.Namespace = "other" })
		}, OK, "no others", ""},
		"elsewhere, before": {"GB404", func(_ *testing.T, b *bed) {
			b.options.Pre = true
			b.node("n", map[string]string{"example.com/npu": "8"})
			b.pod("p", "example.com/npu", func(p *corev1.Pod) { p.Namespace = "other" })
		}, Warning, "example.com/npu", "resources:"},
	}
}

func offerAndAsk(b *bed, names ...string) {
	for _, name := range names {
		b.node(name, map[string]string{name: "8"})
		b.pod(name, name)
	}
}

const preferredPolicy = `apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  pluginConfig:
  - name: RemovePodsViolatingNodeAffinity
    args:
      nodeAffinityType:
      - requiredDuringSchedulingIgnoredDuringExecution
      - preferredDuringSchedulingIgnoredDuringExecution
`

const enabledPlugin = `  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeAffinity]}}
`

const oldPolicy = `apiVersion: descheduler/v1alpha1
kind: DeschedulerPolicy
strategies:
  RemovePodsViolatingNodeAffinity:
    enabled: true
    params: {nodeAffinityType: [preferredDuringSchedulingIgnoredDuringExecution]}
`

func (b *bed) policy(namespace, name, text string, labels map[string]string) {
	b.configMaps = append(b.configMaps, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Data:       map[string]string{"policy.yaml": text, "other": ":"},
	})
}

// surroundingCases are the 5xx.
func surroundingCases() map[string]broken {
	karpenter := func(b *bed, version, image string) {
		labels := map[string]string{nameLabel: "karpenter"}
		if version != "" {
			labels["app.kubernetes.io/version"] = version
		}
		b.deployment("karpenter", "karpenter", 2, labels).Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	}
	exclude := "      namespaces: {exclude: [team-a]}\n"
	policyText := preferredPolicy + enabledPlugin
	kai := func(p *corev1.Pod) { p.Spec.SchedulerName = "kai-scheduler" }
	return map[string]broken{
		"old Karpenter": {"GB501", func(_ *testing.T, b *bed) {
			karpenter(b, "1.4.9", "")
		}, Warning, "1.4.9", "kubectl -n karpenter get deployment karpenter"},
		"old, by the image": {"GB501", func(_ *testing.T, b *bed) {
			karpenter(b, "", "public.ecr.aws/karpenter/controller:0.37.0@sha256:ab")
		}, Warning, "0.37.0", ""},
		"Karpenter": {"GB501", func(_ *testing.T, b *bed) { karpenter(b, "1.15.0", "") }, OK, "1.15.0", ""},
		"which Karpenter": {"GB501", func(_ *testing.T, b *bed) {
			karpenter(b, "", "localhost:5000/karpenter")
		}, Warning, "does not tell", "kubectl"},
		"preferred type": {"GB502", func(_ *testing.T, b *bed) {
			b.policy("kube-system", "p", policyText, nil)
		}, Failure, "kube-system/p: RemovePodsViolatingNodeAffinity", "docs/compatibility.md#descheduler"},
		"labelled elsewhere": {"GB502", func(_ *testing.T, b *bed) {
			b.policy("ops", "p", policyText, map[string]string{nameLabel: "descheduler"})
		}, Failure, "from team-a", "kubectl -n ops edit configmap p"},
		"old policy": {"GB502", func(_ *testing.T, b *bed) {
			b.policy("kube-system", "p", oldPolicy, nil)
		}, Failure, "team-a", ""},
		"not enabled": {"GB502", func(_ *testing.T, b *bed) {
			b.policy("kube-system", "p", preferredPolicy, nil)
		}, OK, "1 ConfigMap", ""},
		"excluded by policy": {"GB502", func(_ *testing.T, b *bed) {
			b.policy("kube-system", "p", preferredPolicy+exclude+enabledPlugin, nil)
		}, OK, "1 ConfigMap", ""},
		"one not excluded": {"GB502", func(_ *testing.T, b *bed) {
			b.namespace("team-b", "true")
			b.policy("kube-system", "p", preferredPolicy+exclude+enabledPlugin, nil)
		}, Failure, "from team-b", ""},
		"equal weights": {"GB502", func(_ *testing.T, b *bed) {
			b.cfg.Weights.Weighting = config.WeightingEqual
			b.policy("kube-system", "p", policyText, nil)
		}, Warning, "team-a", ""},
		"nobody opted in yet": {"GB502", func(_ *testing.T, b *bed) {
			b.namespaces = nil
			b.policy("kube-system", "p", policyText, nil)
		}, Warning, "every namespace", ""},
		"KAI's pods": {"GB503", func(_ *testing.T, b *bed) {
			b.pod("p", "nvidia.com/gpu", kai)
		}, Warning, "kai-scheduler (1 GPU pod)", "schedulerNames: [default-scheduler, kai-scheduler]"},
		"KAI elsewhere": {"GB503", func(_ *testing.T, b *bed) {
			b.deployment("kai", "kai-scheduler-default", 1, nil)
		}, OK, "kai-scheduler is there", ""},
		"its own profile": {"GB504", func(_ *testing.T, b *bed) {
			schedulerPod(b, "--config=/etc/kubernetes/scheduler.yaml")
		}, Warning, "/etc/kubernetes/scheduler.yaml", "kube-scheduler-a"},
		"the way to describe it": {"GB504", func(_ *testing.T, b *bed) {
			schedulerPod(b, "--config=/etc/kubernetes/scheduler.yaml")
		}, Warning, "", "gpu-binpacker check --scheduler-config /etc/kubernetes/scheduler.yaml"},
		"nothing to be seen": {"GB504", func(*testing.T, *bed) {}, OK, "gpu-binpacker check --scheduler-config FILE", ""},
		"profile is stated": {"GB504", func(_ *testing.T, b *bed) {
			b.cfg.Scheduler.PluginWeights.NodeAffinity = 5
			schedulerPod(b, "--config", "/x")
		}, OK, "weight 5", ""},
		"default profile": {"GB504", func(_ *testing.T, b *bed) {
			schedulerPod(b, "--leader-elect=true")
		}, OK, "LeastAllocated, NodeAffinity weight 2", ""},
		"spreading is kept": {"GB505", func(_ *testing.T, b *bed) {
			b.cfg.Spreading.Default = config.SpreadingKeep
		}, Warning, "Keep", "default: Neutralize"},
		"constraints of all": {"GB505", func(_ *testing.T, b *bed) {
			b.cfg.Scheduler.DefaultConstraints = config.ConstraintsList
		}, Warning, "List", "defaultConstraints: System"},
	}
}

func schedulerPod(b *bed, args ...string) {
	b.pods = append(b.pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler-a", Labels: map[string]string{"component": "kube-scheduler"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Command: append([]string{"kube-scheduler"}, args...)}}},
	})
}
