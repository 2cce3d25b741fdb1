package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// mostTried bounds the namespaces in which additions are tried. Each takes three dry runs
// while nothing is refused, of about 10 ms each, so that the check ends within a second.
const mostTried = 20

// checkAdditions creates, as dry runs that the webhook is not called for, pods that carry
// what it may add. GB308 sees only the form of steering that fits now, and one namespace.
func checkAdditions(ctx context.Context, c *cluster) verdict {
	if _, _, err := c.webhook(ctx); err != nil {
		return needsWebhook(err)
	}
	namespaces, v := c.trialNamespaces(ctx)
	switch {
	case v != nil && v.level == Failure:
		return skip("needs GB308")
	case v != nil:
		return *v
	}
	gpu := c.trialResource(ctx)
	if gpu == "" {
		return skip("needs a node that offers GPUs, see GB403")
	}
	forms, v := c.forms(ctx, gpu)
	if v != nil {
		return *v
	}
	a := attempt{forms: forms, gpu: gpu, refused: make([]bool, len(additions))}
	for _, namespace := range namespaces[:min(len(namespaces), mostTried)] {
		a.in(ctx, c, namespace)
	}
	result := a.verdict()
	if more := len(namespaces) - mostTried; more > 0 {
		result = result.detail(terminal.Count(more, "further namespace") + " not tried: --namespace names one")
	}
	return result
}

// attempt tries additions in several namespaces.
type attempt struct {
	// forms are pods on trial as the webhook leaves them.
	forms []*corev1.Pod
	// gpu is the resource that they ask for.
	gpu corev1.ResourceName
	// tried are the namespaces in which pods could be tried, barred those of them that
	// refuse additions.
	tried, barred []string
	// withheld says why the last namespace could not be tried, if there was one.
	withheld *verdict
	// refused says which of the additions were refused anywhere, and details in which words.
	refused []bool
	details []string
}

// in tries them in one namespace.
func (a *attempt) in(ctx context.Context, c *cluster, namespace string) {
	if v := c.mayTry(ctx, namespace); v != nil {
		a.withheld = v
		return
	}
	carrier := c.carrier(ctx, namespace, a.gpu)
	if carrier == nil {
		v := skip("a quota or policy takes no pod at all in %s", namespace)
		a.withheld = &v
		return
	}
	a.tried = append(a.tried, namespace)
	var lines []string
	for _, form := range a.forms {
		lines = append(lines, a.refusals(ctx, c, namespace, carrier, form)...)
	}
	if len(lines) > 0 {
		slices.Sort(lines)
		a.barred, a.details = append(a.barred, namespace), append(a.details, slices.Compact(lines)...) // both forms have some in common
	}
}

func (a *attempt) verdict() verdict {
	switch {
	case len(a.barred) > 0:
		return fail("in %s, pods are refused because of what gpu-binpacker adds; opt out", few(a.barred)).
			detail(a.details...).fix(remedies(a.barred, a.refused)...)
	case len(a.tried) > 0:
		return ok("%s, in %s", a.words(), few(a.tried))
	default:
		return *a.withheld // since there is a namespace at least
	}
}

// words name the forms.
func (a *attempt) words() string {
	var words []string
	for _, form := range a.forms {
		if word := form.Annotations[config.AnnotationSteering]; word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if len(words) == 0 {
		return "nothing is added"
	}
	return strings.Join(words, " and ")
}

// forms returns pods on trial as the webhook makes them of them: ranked on the nodes that
// there are, as if nothing ran there, and late, as if there were no nodes.
func (c *cluster) forms(ctx context.Context, gpu corev1.ResourceName) ([]*corev1.Pod, *verdict) {
	nodes, err := c.nodes(ctx)
	if err != nil {
		v := unread("list nodes", err)
		return nil, &v
	}
	var forms []*corev1.Pod
	for _, there := range [][]corev1.Node{nodes, nil} {
		pod, err := c.steer(ctx, trialPod(gpu), there)
		if err != nil {
			v := fail("cannot make the pods on trial: %v", err)
			return nil, &v
		}
		forms = append(forms, pod)
	}
	return forms, nil
}

// steer returns what the webhook would make of a pod if these were the nodes.
func (c *cluster) steer(ctx context.Context, pod *corev1.Pod, nodes []corev1.Node) (*corev1.Pod, error) {
	cfg := c.assumed(ctx)
	now := state.New(c.Now(), nil, nodes, nil)
	ix, err := now.Index(cfg)
	if err != nil {
		return nil, err
	}
	trial, err := webhook.Try(ctx, cfg, now.Scorer(cfg, ix), pod)
	if err != nil {
		return nil, err
	}
	return trial.Apply(pod)
}

// carrier makes pods that the webhook is not called for, and that the namespace accepts:
// with the opt-out or, where a policy about labels forbids that, without GPUs. It is nil
// where neither is accepted.
func (c *cluster) carrier(ctx context.Context, namespace string, gpu corev1.ResourceName) func() *corev1.Pod {
	for _, carrier := range []func() *corev1.Pod{
		func() *corev1.Pod { return optedOut(trialPod(gpu)) },
		func() *corev1.Pod { return withoutGPU(trialPod(gpu), gpu) },
	} {
		if _, err := c.try(ctx, namespace, carrier()); err == nil {
			return carrier
		}
	}
	return nil
}

func withoutGPU(pod *corev1.Pod, gpu corev1.ResourceName) *corev1.Pod {
	delete(pod.Spec.Containers[0].Resources.Requests, gpu)
	delete(pod.Spec.Containers[0].Resources.Limits, gpu)
	return pod
}

// refusals returns a line for each kind of addition of the form that the namespace
// refuses.
func (a *attempt) refusals(ctx context.Context, c *cluster, namespace string, carrier func() *corev1.Pod, form *corev1.Pod) []string {
	whole := carrier()
	for i := range additions {
		additions[i].take(whole, form)
	}
	if _, err := c.try(ctx, namespace, whole); err == nil {
		return nil
	}
	together := c.refusedForUs(ctx, namespace, whole, carrier())
	if together == nil {
		return nil
	}
	if lines := a.refusedAlone(ctx, c, namespace, carrier, form); len(lines) > 0 {
		return lines
	}
	return []string{fmt.Sprintf("%s: all of it together: %s", namespace, withoutName(together))}
}

// refusedAlone tries each kind of addition for itself.
func (a *attempt) refusedAlone(ctx context.Context, c *cluster, namespace string, carrier func() *corev1.Pod, form *corev1.Pod) (lines []string) {
	for i := range additions {
		pod := carrier()
		if !additions[i].take(pod, form) {
			continue
		}
		if _, err := c.try(ctx, namespace, pod); err == nil {
			continue
		}
		if err := c.refusedForUs(ctx, namespace, pod, carrier()); err != nil {
			a.refused[i] = true
			lines = append(lines, fmt.Sprintf("%s: %s: %s", namespace, additions[i].name, withoutName(err)))
		}
	}
	return lines
}

// withoutName are the API server's words about a pod without the pod's name, of which it
// makes up the end.
func withoutName(err error) string {
	words := err.Error()
	if rest, ok := strings.CutPrefix(words, `pods "`+trialName); ok {
		if _, rest, ok = strings.Cut(rest, `" is `); ok {
			return rest
		}
	}
	return words
}
