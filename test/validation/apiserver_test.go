package validation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4" // the one that kube-apiserver applies patches with
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // fills legacyscheme
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/capabilities"
	quota "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	podregistry "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/clock"
)

// As nearly every API server runs, with --allow-privileged.
func init() { capabilities.Setup(true, 0) }

// serializer reads and writes pods as the mutating dispatcher of the API server
// does: k8s.io/apiserver, pkg/admission/plugin/webhook/mutating/dispatcher.go.
var serializer = json.NewSerializerWithOptions(json.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme, json.SerializerOptions{})

func decode(raw []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if _, _, err := serializer.Decode(raw, nil, pod); err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(pod)
	return pod, nil
}

// received returns the pod as the API server sends it to webhooks: what it does
// not know is gone, and defaults are filled in.
func received(raw []byte, namespace string) ([]byte, error) {
	versioned, err := decode(raw)
	if err != nil {
		return nil, err
	}
	pod := &core.Pod{}
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(versioned, pod, nil); err != nil {
		return nil, err
	}
	pod.Namespace = cmp.Or(pod.Namespace, namespace)
	versioned = &corev1.Pod{}
	if err := corev1conversion.Convert_core_Pod_To_v1_Pod(pod, versioned, nil); err != nil {
		return nil, err
	}
	versioned.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return runtime.Encode(serializer, versioned)
}

// apply applies a patch as the API server does.
func apply(raw, patch []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(raw)
}

// create does to a pod what the API server does after admission: defaults,
// conversion, and everything that the registry's strategy checks. It returns what
// would be stored.
func create(raw []byte, namespace string) (*core.Pod, error) {
	versioned, err := decode(raw)
	if err != nil {
		return nil, err
	}
	pod := &core.Pod{}
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(versioned, pod, nil); err != nil {
		return nil, err
	}
	if pod.Name == "" && pod.GenerateName != "" {
		pod.Name = podregistry.Strategy.GenerateName(pod.GenerateName)
	}
	rest.FillObjectMetaSystemFields(pod)
	ctx := genericapirequest.WithRequestInfo(context.Background(), &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIVersion: "v1", Resource: "pods", Namespace: namespace,
	})
	ctx = genericapirequest.WithNamespace(ctx, namespace)
	if err := rest.BeforeCreate(podregistry.Strategy, ctx, pod); err != nil {
		return nil, err
	}
	return pod, nil
}

// standing is what decides, besides validation, whether a namespace takes a pod:
// its quota scopes and usage, and the Pod Security levels that it satisfies.
type standing struct {
	Scopes      []corev1.ResourceQuotaScope
	Usage       corev1.ResourceList
	QOSClass    core.PodQOSClass
	PodSecurity map[api.Level]string
}

var (
	quotaEvaluator    = quota.NewPodEvaluator(nil, clock.RealClock{})
	securityEvaluator = func() policy.Evaluator {
		evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
		if err != nil {
			panic(err)
		}
		return evaluator
	}()
)

func standingOf(t testing.TB, pod *core.Pod) standing {
	t.Helper()
	s := standing{QOSClass: pod.Status.QOSClass, PodSecurity: map[api.Level]string{}}
	var all []corev1.ScopedResourceSelectorRequirement
	for _, scope := range []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
	} {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	matching, err := quotaEvaluator.MatchingScopes(pod, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range matching {
		s.Scopes = append(s.Scopes, m.ScopeName)
	}
	slices.Sort(s.Scopes)
	if s.Usage, err = quotaEvaluator.Usage(pod); err != nil {
		t.Fatal(err)
	}
	versioned := &corev1.Pod{}
	if err := corev1conversion.Convert_core_Pod_To_v1_Pod(pod, versioned, nil); err != nil {
		t.Fatal(err)
	}
	for _, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
		results := securityEvaluator.EvaluatePod(api.LevelVersion{Level: level, Version: api.LatestVersion()}, &versioned.ObjectMeta, &versioned.Spec)
		aggregate := policy.AggregateCheckResults(results)
		s.PodSecurity[level] = fmt.Sprint(aggregate.Allowed, aggregate.ForbiddenDetail())
	}
	return s
}

// start is where the clocks of the tests stand.
var start = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
