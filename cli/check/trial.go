package check

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// checkTrial creates a GPU pod as a server-side dry run, which goes the whole way
// through admission and is stored nowhere.
func checkTrial(ctx context.Context, c *cluster) verdict {
	if _, _, err := c.webhook(ctx); err != nil {
		return needsWebhook(err)
	}
	namespace, v := c.trialNamespace(ctx)
	if v != nil {
		return *v
	}
	gpu := c.trialResource(ctx)
	if gpu == "" {
		return skip("needs a node that offers GPUs, see GB403")
	}
	if v := c.mayTry(ctx, namespace); v != nil {
		return *v
	}
	pod, err := c.try(ctx, namespace, trialPod(gpu))
	if err != nil {
		if refusal := c.refusedForUs(ctx, namespace, trialPod(gpu), optedOut(trialPod(gpu)), gated(trialPod(gpu))); refusal != nil {
			return fail("GPU pods in %s are refused because of what gpu-binpacker adds: %v; opt the namespace out", namespace, refusal).
				fix(optOut(namespace), letPass)
		}
		return warn("the API server does not take a pod with one %s in %s", gpu, namespace).detail(err.Error()).
			fix("# if a quota or policy of the namespace is in the way:", "gpu-binpacker check --namespace ANOTHER")
	}
	switch pod.Annotations[config.AnnotationSteering] {
	case config.SteeringRanked:
		return ok("in %s, towards %s", namespace, pod.Annotations[config.AnnotationTarget])
	case config.SteeringLate:
		return ok("in %s, late: no node has room for one %s now", namespace, gpu)
	case config.SteeringDryRun:
		return ok("in %s, in dry-run mode", namespace)
	}
	return c.unsteered(ctx, namespace, pod)
}

// mayTry is nil when the user may create pods in the namespace.
func (c *cluster) mayTry(ctx context.Context, namespace string) *verdict {
	allowed, err := c.may(ctx, "create", "", "pods", namespace)
	if err == nil && allowed {
		return nil
	}
	v := skip("needs permission to create pods in %s", namespace)
	if err != nil {
		v = unread("create selfsubjectaccessreviews", err)
	}
	return &v
}

// try creates the pod as a dry run and returns it as admission leaves it.
func (c *cluster) try(ctx context.Context, namespace string, pod *corev1.Pod) (*corev1.Pod, error) {
	return c.Kubernetes.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// refusedForUs tells whether a pod that was refused is refused because of what is added
// to it: one of the others, which are the same pod with nothing added, is accepted, and
// the pod itself is refused once more after that, since a quota may have had no room for
// a moment. It returns the API server's words, nil when there is another cause.
func (c *cluster) refusedForUs(ctx context.Context, namespace string, pod *corev1.Pod, others ...*corev1.Pod) error {
	for _, other := range others {
		if _, err := c.try(ctx, namespace, other); err == nil {
			_, err := c.try(ctx, namespace, pod)
			return err
		}
	}
	return nil
}

// trialNamespace is where to try a pod.
func (c *cluster) trialNamespace(ctx context.Context) (string, *verdict) {
	namespaces, v := c.trialNamespaces(ctx)
	if v != nil {
		return "", v
	}
	return namespaces[0], nil
}

// trialNamespaces are those in which pods may be tried, at least one: the one that the
// user names, else all that have opted in.
func (c *cluster) trialNamespaces(ctx context.Context) ([]string, *verdict) {
	enabled, err := c.enabled(ctx)
	var v verdict
	switch {
	case err != nil && c.Namespace != "":
		return []string{c.Namespace}, nil // not allowed to list, but perhaps to create
	case err != nil:
		v = unread("list namespaces (or give --namespace)", err)
	case c.Namespace == "" && len(enabled) == 0:
		v = skip("needs an opted-in namespace, see GB401")
	case c.Namespace == "":
		return enabled, nil
	case !slices.Contains(enabled, c.Namespace):
		v = fail("namespace %s has not opted in, or is excluded", c.Namespace).fix(optIn(c.Namespace))
	default:
		return []string{c.Namespace}, nil
	}
	return nil, &v
}

// trialResource is the GPU resource to ask for: the first that a node offers, in
// the order of the configuration, else the first configured one.
func (c *cluster) trialResource(ctx context.Context) corev1.ResourceName {
	cfg := c.assumed(ctx)
	nodes, err := c.nodes(ctx)
	offered := offeredGPUs(nodes, cfg.Resources)
	for _, name := range cfg.Resources.Names {
		if len(offered) == 0 || offered[name].nodes > 0 {
			return corev1.ResourceName(name)
		}
	}
	if err != nil || len(offered) == 0 {
		return ""
	}
	return corev1.ResourceName(sortedKeys(offered)[0])
}

// trialName is what the names of pods on trial begin with.
const trialName = "gpu-binpacker-check-"

// trialPod meets the restricted Pod Security level and quotas that want requests
// and limits. It tolerates everything, as it is never to run.
func trialPod(gpu corev1.ResourceName) *corev1.Pod {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi"), gpu: resource.MustParse("1"),
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: trialName},
		Spec: corev1.PodSpec{
			Tolerations:   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "check", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: ptr.To(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// optedOut keeps the webhook from being called for the pod.
func optedOut(pod *corev1.Pod) *corev1.Pod {
	pod.Labels = map[string]string{config.LabelEnabled: "false"}
	return pod
}

// gated makes the webhook leave the pod alone. It does without the label of the opt-out,
// which a policy about labels may forbid as well.
func gated(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: config.Domain + "/check"}}
	return pod
}

// unsteered is about a pod that came back without an annotation of ours: was the
// webhook not called, or did it leave the pod alone for a reason?
func (c *cluster) unsteered(ctx context.Context, namespace string, pod *corev1.Pod) verdict {
	cfg := c.assumed(ctx)
	var because string
	switch _, reason := steering.EligibleWhenCreated(pod, &cfg); reason {
	case steering.ReasonOtherScheduler:
		because = fmt.Sprintf("another webhook gave it the scheduler %s", pod.Spec.SchedulerName)
	case steering.ReasonGated:
		because = fmt.Sprintf("another webhook gave it the scheduling gate %s", pod.Spec.SchedulingGates[0].Name)
	case steering.ReasonSpread:
		because = "another webhook gave it a wish to be spread"
	default:
		because = c.reason(ctx, namespace, pod)
	}
	if because != "" {
		return warn("the pod came back unchanged, as it should: %s", because)
	}
	return fail("the pod came back unchanged from %s: the webhook was not reached, or has not read nodes and pods yet", namespace).
		fix("kubectl -n "+c.systemNamespace(ctx)+" get pods,endpointslices",
			"kubectl -n "+c.systemNamespace(ctx)+" logs -l app.kubernetes.io/name=gpu-binpacker",
			"# can the control plane reach the pods? see docs/operating.md#ports")
}

// reason decides about the pod as a replica would and returns why it would leave
// it alone, empty when it would not or when that cannot be told.
func (c *cluster) reason(ctx context.Context, namespace string, pod *corev1.Pod) string {
	cfg := c.assumed(ctx)
	nodes, err := c.nodes(ctx)
	if err != nil {
		return ""
	}
	pods, err := c.pods(ctx)
	if err != nil {
		return ""
	}
	now := state.New(c.Now(), []string{namespace}, nodes, pods)
	index, err := now.Index(cfg)
	if err != nil {
		return ""
	}
	decision := now.Scorer(cfg, index).Decide(ctx, scoring.Request{Pod: pod, Namespace: namespace, UID: "check", DryRun: true})
	if decision.Reason == steering.ReasonNone || decision.Late != nil {
		return ""
	}
	return fmt.Sprintf("a decision made here ends with %s", decision.Reason)
}
