package attack

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const (
	// attackerName is the user who attacks.
	attackerName = "attacker"
	// attackersInFlight bounds the requests that an attacker has under way: enough for 200
	// small pods a second. Of large ones there are only fewInFlight, or the API server,
	// which decodes, checks and stores them, would be the one that is attacked.
	attackersInFlight, fewInFlight = 32, 4
	// attackerTimeout limits one request of an attacker.
	attackerTimeout = 10 * time.Second
)

// attacker is a user who may create and delete pods in one namespace, and nothing else.
// Its methods may be called from any goroutine.
type attacker struct {
	namespace string
	client    rest.Interface

	mu sync.Mutex // guards what follows
	// made is how many requests or connections got where they were to go.
	made int
	// last is why the latest of the others did not.
	last error
}

// newAttacker creates a namespace for the attack, and the attacker's rights in it.
func (b *bed) newAttacker(ctx context.Context, a attack) (*attacker, error) {
	labels := map[string]string{}
	if a.optedIn {
		labels[config.LabelEnabled] = "true"
	}
	namespace, err := b.GenerateNamespace(ctx, attackerName, labels)
	if err != nil {
		return nil, err
	}
	for _, object := range attackersObjects(namespace, a.quota) {
		if err := b.Client().Create(ctx, object); err != nil {
			return nil, fmt.Errorf("preparing the attacker's namespace: %w", err)
		}
	}
	restConfig := b.RESTConfig()
	restConfig.Impersonate = rest.ImpersonationConfig{UserName: attackerName}
	restConfig.ContentType = runtime.ContentTypeProtobuf // cheaper for the API server, and so a harder attack
	restConfig.Timeout = attackerTimeout
	// A dialer of his own, or he would share the victims' connection.
	restConfig.Dial = (&net.Dialer{Timeout: connectTimeout}).DialContext
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return nil, fmt.Errorf("building the attacker's client: %w", err)
	}
	user := &attacker{namespace: namespace, client: clientset.CoreV1().RESTClient()}
	return user, user.waitRights(ctx, a)
}

// attackersObjects are the role of the attacker and, if wanted, a quota without GPUs.
func attackersObjects(namespace string, quota bool) []client.Object {
	metadata := metav1.ObjectMeta{Namespace: namespace, Name: attackerName}
	objects := []client.Object{
		&rbacv1.Role{ObjectMeta: metadata, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: metadata,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: attackerName},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: attackerName}},
		},
	}
	if quota {
		objects = append(objects, &corev1.ResourceQuota{ObjectMeta: metadata, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("0")},
		}})
	}
	return objects
}

// waitRights waits until role and quota are in force, and returns an error if the
// attacker may do more than he should.
func (a *attacker) waitRights(ctx context.Context, row attack) error {
	trial := eightGPUs(0)
	trial.Name = "trial"
	err := wait(ctx, "the attacker's rights", func(ctx context.Context) (bool, error) {
		err := a.create(ctx, a.namespace, trial, true)
		if row.quota && isOverQuota(err) {
			return true, nil
		}
		return err == nil && !row.quota, err
	})
	if err != nil {
		return err
	}
	list := a.client.Get().Namespace(a.namespace).Resource("pods").Do(ctx).Error()
	if elsewhere := a.create(ctx, victimsNamespace, trial, true); !apierrors.IsForbidden(elsewhere) || !apierrors.IsForbidden(list) {
		return fmt.Errorf("the attacker may do too much: in the victims' namespace: %w; list pods: %w", elsewhere, list)
	}
	return nil
}

// create creates a pod, or tries whether it could.
func (a *attacker) create(ctx context.Context, namespace string, pod *corev1.Pod, dryRun bool) error {
	options := &metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return a.client.Post().Namespace(namespace).Resource("pods").VersionedParams(options, scheme.ParameterCodec).
		Body(pod).MaxRetries(0).Do(ctx).Error()
}

func (a *attacker) delete(ctx context.Context, name string) error {
	now := int64(0)
	return a.client.Delete().Namespace(a.namespace).Resource("pods").Name(name).
		Body(&metav1.DeleteOptions{GracePeriodSeconds: &now}).MaxRetries(0).Do(ctx).Error()
}

// note counts what came of a request or connection.
func (a *attacker) note(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.last = err
		return
	}
	a.made++
}

// outcome is how many requests or connections got where they were to go, and why the
// last of the others did not.
func (a *attacker) outcome() (made int, last string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil {
		last = a.last.Error()
	}
	return a.made, last
}

// barrage is a stream of pods.
type barrage struct {
	// perSecond is the rate, if the API server keeps up.
	perSecond int
	// few: only fewInFlight at a time.
	few bool
	// pod makes pod n.
	pod func(n int) *corev1.Pod
	// dryRun: the pods are only tried.
	dryRun bool
	// keep is how many pods exist at a time.
	keep int
	// refused tells whether an error is the wanted one: a refusal that comes after the
	// API server has called the webhook. Nil: all pods are to be created.
	refused func(error) bool
}

// run creates pods until ctx ends.
func (g barrage) run(ctx context.Context, _ *bed, a *attacker) error {
	inFlight := attackersInFlight
	if g.few {
		inFlight = fewInFlight
	}
	// What is under way at the end is not cut off but gets its answer.
	sending := context.WithoutCancel(ctx)
	atRate(ctx, g.perSecond, inFlight, func(n int) { g.send(sending, a, n) })
	return nil
}

// send creates pod n and deletes an earlier one.
func (g barrage) send(ctx context.Context, a *attacker, n int) {
	pod := g.pod(n)
	pod.Name = podName(n)
	err := a.create(ctx, a.namespace, pod, g.dryRun)
	if err != nil && g.refused != nil && g.refused(err) {
		a.note(nil)
		return
	}
	a.note(err)
	if err == nil && !g.dryRun && n >= g.keep {
		// What stays is deleted with the rest in the end.
		_ = a.delete(ctx, podName(n-g.keep))
	}
}

// atRate calls do with rising numbers until ctx ends, so many at a time, and returns when
// all calls have.
func atRate(ctx context.Context, perSecond, inFlight int, do func(n int)) {
	var calls sync.WaitGroup
	defer calls.Wait()
	slots := make(chan struct{}, inFlight)
	ticker := time.NewTicker(time.Second / time.Duration(perSecond))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		calls.Go(func() {
			defer func() { <-slots }()
			do(n)
		})
	}
}

func podName(n int) string { return fmt.Sprintf("pod-%d", n) }

// isOverQuota tells whether a quota has refused a pod.
func isOverQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
