package controlplane

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// smokeTimeout limits one step of the smoke test.
const smokeTimeout = time.Minute

// TestEverything starts all components and looks at each one's work. The
// subtests share a control plane and run in order.
func TestEverything(t *testing.T) {
	t.Parallel()
	cp := StartForTest(t, Options{ControllerManager: true, Kwok: true, CertManager: true})
	t.Run("version", func(t *testing.T) { testVersion(t, cp) })
	t.Run("nodes", func(t *testing.T) { testNodes(t, cp) })
	t.Run("pod runs, ends and disappears", func(t *testing.T) { testPod(t, cp) })
	t.Run("replicas", func(t *testing.T) { testReplicas(t, cp) })
	t.Run("certificates", func(t *testing.T) { testCertificates(t, cp) })
	t.Run("restart of the API server", func(t *testing.T) { testRestart(t, cp) })
	t.Run("metrics", func(t *testing.T) { testMetrics(t, cp) })
	t.Run("stop", func(t *testing.T) { testStop(t, cp) })
}

// TestSchedulerOnly checks that a pod is bound without kube-controller-manager,
// which would take taints away and make service accounts, and beside the control
// plane of TestEverything.
func TestSchedulerOnly(t *testing.T) {
	t.Parallel()
	cp := StartForTest(t, Options{})
	if err := cp.CreateNodes(t.Context(), Node("lonely", map[string]string{"cpu": "4", "memory": "8Gi"})); err != nil {
		t.Fatal(err)
	}
	if err := cp.CreateNamespace(t.Context(), "work", nil); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"default", "work"} {
		pod := newPod(namespace, "pod", nil)
		if err := cp.Client().Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		eventually(t, cp, pod, func() bool { return pod.Spec.NodeName == "lonely" })
	}
}

func testVersion(t *testing.T, cp *ControlPlane) {
	want := os.Getenv(programs.KubernetesVariable)
	if want == "" {
		tested, err := programs.TestedKubernetes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want = tested[len(tested)-1]
	}
	want = "v" + strings.TrimPrefix(want, "v")
	got, err := cp.KubernetesVersion()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("the API server calls itself %s, want %s", got, want)
	}
}

func testNodes(t *testing.T, cp *ControlPlane) {
	taint := corev1.Taint{Key: "reserved", Effect: corev1.TaintEffectNoSchedule}
	nodes := append(
		Nodes("gpu", 3, map[string]string{"cpu": "96", "memory": "1152Gi", "nvidia.com/gpu": "8"}, WithZone("a")),
		Node("reserved", map[string]string{"cpu": "1"}, WithTaints(taint)),
	)
	if err := cp.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	var list corev1.NodeList
	if err := cp.Client().List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != len(nodes) {
		t.Errorf("%d nodes, want %d", len(list.Items), len(nodes))
	}
	for _, node := range list.Items {
		wantTaints := 0
		if node.Name == "reserved" {
			wantTaints = 1
		}
		if len(node.Spec.Taints) != wantTaints {
			t.Errorf("node %s has taints %v, want %d", node.Name, node.Spec.Taints, wantTaints)
		}
	}
}

func testPod(t *testing.T, cp *ControlPlane) {
	pod := newPod("default", "short", map[string]string{"nvidia.com/gpu": "1"})
	pod.Annotations = map[string]string{RunsForAnnotation: "1s"}
	if err := cp.Client().Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, cp, pod, func() bool { return pod.Status.Phase == corev1.PodRunning })
	if !hasCondition(pod, corev1.PodScheduled) || !hasCondition(pod, corev1.PodReady) || pod.Status.PodIP == "" {
		t.Errorf("status of a running pod: %+v", pod.Status)
	}
	eventually(t, cp, pod, func() bool { return pod.Status.Phase == corev1.PodSucceeded })
	if err := cp.Client().Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	waitDeleted(t, cp, pod)

	failing := newPod("default", "failing", nil)
	failing.Annotations = map[string]string{FailsAfterAnnotation: "0s"}
	if err := cp.Client().Create(t.Context(), failing); err != nil {
		t.Fatal(err)
	}
	eventually(t, cp, failing, func() bool { return failing.Status.Phase == corev1.PodFailed })

	const reason = "UnexpectedAdmissionError"
	refused := newPod("default", "refused", nil)
	refused.Annotations = map[string]string{RefusedAnnotation: reason}
	if err := cp.Client().Create(t.Context(), refused); err != nil {
		t.Fatal(err)
	}
	eventually(t, cp, refused, func() bool { return refused.Status.Phase == corev1.PodFailed })
	if refused.Status.Reason != reason || len(refused.Status.ContainerStatuses) > 0 {
		t.Errorf("status of a refused pod: %+v", refused.Status)
	}
}

func testReplicas(t *testing.T, cp *ControlPlane) {
	if err := cp.CreateNamespace(t.Context(), "replicas", nil); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "replicas"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "replicas", Name: "replicas"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](20),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       newPod("", "", map[string]string{"nvidia.com/gpu": "1"}).Spec,
			},
		},
	}
	if err := cp.Client().Create(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	eventually(t, cp, deployment, func() bool { return deployment.Status.ReadyReplicas == 20 })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "replicas"}}
	if err := cp.Client().Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	waitDeleted(t, cp, namespace)
}

func testRestart(t *testing.T, cp *ControlPlane) {
	server := cp.Component(APIServer)
	before := server.PID()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cp.get(t.Context(), cp.addresses[APIServer]+"/readyz"); err == nil {
		t.Error("a killed API server answers")
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if server.PID() == before {
		t.Error("the API server has the same PID after a restart")
	}
	pod := newPod("default", "after-restart", nil)
	if err := cp.Client().Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, cp, pod, func() bool { return pod.Status.Phase == corev1.PodRunning })
}

func testMetrics(t *testing.T, cp *ControlPlane) {
	scheduler, err := cp.Metrics(t.Context(), KubeScheduler)
	if err != nil {
		t.Fatal(err)
	}
	// One pod of testPod each way, twenty replicas, one after the restart.
	if scheduled := scheduler.Sum("scheduler_schedule_attempts_total", map[string]string{"result": "scheduled"}); scheduled < 24 {
		t.Errorf("the scheduler has scheduled %v pods, want at least 24", scheduled)
	}
	for _, count := range []func(context.Context, string) (int, error){cp.Rejections, cp.FailOpens} {
		if got, err := count(t.Context(), ""); got != 0 || err != nil {
			t.Errorf("a webhook count is %d, %v, want 0", got, err)
		}
	}
}

func testStop(t *testing.T, cp *ControlPlane) {
	var pids []int
	for _, component := range cp.components {
		pids = append(pids, component.PID())
	}
	if len(pids) != 6 {
		t.Errorf("%d components, want 6", len(pids))
	}
	start := time.Now()
	if err := cp.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("stopped in %s", time.Since(start).Round(time.Millisecond))
	waitGone(t, pids...)
	if _, err := os.Stat(cp.Dir()); !os.IsNotExist(err) {
		t.Errorf("%s still exists", cp.Dir())
	}
}

// newPod returns a pod of one container with the given limits.
func newPod(namespace, name string, limits map[string]string) *corev1.Pod {
	resources := corev1.ResourceList{}
	for name, quantity := range limits {
		resources[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.invalid/main", Resources: corev1.ResourceRequirements{Limits: resources},
		}}},
	}
}

// hasCondition reports whether a condition of the pod is true.
func hasCondition(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == kind {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// eventually reads the object until the condition holds.
func eventually(t *testing.T, cp *ControlPlane, object client.Object, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), readyInterval, smokeTimeout, true,
		func(ctx context.Context) (bool, error) {
			if err := cp.Client().Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return false, err
			}
			return condition(), nil
		})
	if err != nil {
		t.Fatalf("%T %s: %v\n%+v", object, object.GetName(), err, object)
	}
}

// waitDeleted waits until the object does not exist.
func waitDeleted(t *testing.T, cp *ControlPlane, object client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), readyInterval, smokeTimeout, true,
		func(ctx context.Context) (bool, error) {
			err := cp.Client().Get(ctx, client.ObjectKeyFromObject(object), object)
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		})
	if err != nil {
		t.Fatalf("%T %s is not deleted: %v", object, object.GetName(), err)
	}
}
