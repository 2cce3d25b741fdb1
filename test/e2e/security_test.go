package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/pod-security-admission/api"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// productPod is a pod of the shipped Deployment.
func productPod(t *testing.T) *corev1.Pod {
	t.Helper()
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: config.SystemNamespace, Name: "gpu-binpacker"}
	if err := cluster.Client().Get(t.Context(), key, deployment); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	pod.Namespace, pod.Name = config.SystemNamespace, "trial"
	return pod
}

// The shipped Deployment runs in its namespace, which enforces the level
// restricted; pods that lack any of what it demands do not.
func TestOurPodsAreRestricted(t *testing.T) {
	namespace := &corev1.Namespace{}
	if err := cluster.Client().Get(t.Context(), client.ObjectKey{Name: config.SystemNamespace}, namespace); err != nil {
		t.Fatal(err)
	}
	if level := namespace.Labels[api.EnforceLevelLabel]; level != string(api.LevelRestricted) {
		t.Fatalf("the namespace enforces level %q", level)
	}
	if err := cluster.Client().Create(t.Context(), productPod(t), client.DryRunAll); err != nil {
		t.Errorf("a pod of the Deployment is refused: %v", err)
	}
	for name, weaken := range map[string]func(*corev1.PodSpec){
		"privileged": func(s *corev1.PodSpec) {
			s.Containers[0].SecurityContext.Privileged = ptr.To(true)
			s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil // not allowed together
		},
		"may be root":      func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
		"is root":          func(s *corev1.PodSpec) { s.SecurityContext.RunAsUser = ptr.To[int64](0) },
		"no seccomp":       func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
		"may gain rights":  func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"has capabilities": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
		"host network":     func(s *corev1.PodSpec) { s.HostNetwork = true },
		"host path": func(s *corev1.PodSpec) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := productPod(t)
			weaken(&pod.Spec)
			err := cluster.Client().Create(t.Context(), pod, client.DryRunAll)
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// The metrics are for those whom the cluster knows and allows to read them, over
// TLS 1.3.
func TestMetricsAreProtected(t *testing.T) {
	url := cluster.Installed.Replicas()[0].MetricsURL()
	status := func(restConfig *rest.Config) int {
		t.Helper()
		restConfig.Insecure = true // the endpoint makes its own certificate
		transport, err := rest.TransportFor(restConfig)
		if err != nil {
			t.Fatal(err)
		}
		httpClient := &http.Client{Transport: transport, Timeout: 30 * time.Second}
		defer httpClient.CloseIdleConnections()
		response, err := httpClient.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if got := status(&rest.Config{}); got != http.StatusUnauthorized {
		t.Errorf("without a token: status %d", got)
	}
	// controller-runtime takes the API server's verdict for a failure to ask it.
	if got := status(&rest.Config{BearerToken: "forged"}); got != http.StatusInternalServerError {
		t.Errorf("with a forged token: status %d", got)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	token, err := cluster.Clientset().CoreV1().ServiceAccounts(account.Namespace).
		CreateToken(t.Context(), account.Name, tokenRequest(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := status(&rest.Config{BearerToken: token.Status.Token}); got != http.StatusForbidden {
		t.Errorf("with a token that does not allow it: status %d", got)
	}
	// That the right token gets them, every test's WaitIndex shows.
	address := strings.TrimSuffix(strings.TrimPrefix(url, "https://"), "/metrics")
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}}
	if conn, err := dialer.DialContext(t.Context(), "tcp", address); err == nil {
		conn.Close()
		t.Error("TLS 1.2 is accepted")
	}
}

// canary stands for everything in a pod that is nobody's business.
const canary = "canary-5f3a"

// secretive puts the canary wherever a pod can hold something secret.
func secretive(pod *corev1.Pod) *corev1.Pod {
	reference := corev1.LocalObjectReference{Name: canary}
	pod.Annotations = map[string]string{"example.com/password": canary, canary: "x"}
	pod.Labels = map[string]string{"example.com/" + canary: canary}
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{reference}
	pod.Spec.Hostname, pod.Spec.Subdomain = canary, canary
	pod.Spec.NodeSelector = nil
	pod.Spec.Volumes = []corev1.Volume{{Name: canary, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: canary}}}}
	c := &pod.Spec.Containers[0]
	c.Name, c.Image, c.Command, c.Args, c.WorkingDir = canary, canary, []string{canary}, []string{"--password=" + canary}, "/"+canary
	c.Env = []corev1.EnvVar{
		{Name: "PASSWORD", Value: canary},
		{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: reference, Key: canary}}},
	}
	c.EnvFrom = []corev1.EnvFromSource{
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference}},
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference}},
	}
	return pod
}

// secretivePods are pods of each kind that a line is logged about.
func secretivePods() map[string]*corev1.Pod {
	selector := func(operator corev1.NodeSelectorOperator) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: canary, Operator: operator, Values: []string{canary}}}}},
			}}}
		}
	}
	return map[string]*corev1.Pod{
		"ranked":       secretive(gpuPod(1)),
		"late":         secretive(gpuPod(9)),
		"spread":       with(secretive(gpuPod(1)), spread),
		"selects none": with(secretive(gpuPod(1)), selector(corev1.NodeSelectorOpIn)),
		// The API server refuses it, after the webhook has seen it.
		"invalid": with(secretive(gpuPod(1)), selector("Like")),
		"annotations forged": with(secretive(gpuPod(1)), func(p *corev1.Pod) {
			for _, key := range []string{config.AnnotationTarget, config.AnnotationRanking, config.AnnotationAdmission, config.AnnotationSteering} {
				p.Annotations[key] = canary
			}
		}),
		"too large": with(secretive(gpuPod(1)), func(p *corev1.Pod) {
			p.Annotations["example.com/large"] = strings.Repeat(canary+" ", 25_000)
		}),
	}
}

// No log line has anything of a pod but names of nodes and namespaces.
func TestNothingOfPodsIsLogged(t *testing.T) {
	withNodes(t, controlplane.Nodes("canary", 2, node8))
	namespace := optedIn(t, "logs")
	refused, pods := 0, secretivePods()
	for name, pod := range pods {
		pod.Namespace, pod.Name = namespace, strings.ReplaceAll(name, " ", "-")
		if err := cluster.Client().Create(t.Context(), pod); err != nil {
			t.Logf("%s: %.200v", name, err)
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("the API server refused %d pods, want the invalid and the too large one", refused)
	}
	postGarbage(t)
	eventually(t, "the decisions being logged", func(context.Context) (bool, error) {
		lines := 0
		for _, line := range webhookLog(t) {
			if bytes.Contains(line, fmt.Appendf(nil, `"namespace":%q`, namespace)) {
				lines++
			}
		}
		// Reinvocation or two calls of one pod are more.
		return lines >= len(pods), nil
	})
	for _, line := range webhookLog(t) {
		if bytes.Contains(line, []byte(canary)) {
			t.Errorf("logged: %s", line)
		}
	}
}

// postGarbage sends each replica what is no review.
func postGarbage(t *testing.T) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	httpClient := &http.Client{Transport: transport, Timeout: 30 * time.Second}
	for _, replica := range cluster.Installed.Replicas() {
		for _, body := range []string{canary, `{"apiVersion":"` + canary + `","kind":"` + canary + `"}`, `{"request":{"uid":"` + canary + `"}}`} {
			response, err := httpClient.Post("https://"+replica.WebhookAddress()+config.WebhookPath+"?password="+canary, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode/100 == 2 {
				t.Errorf("%s: %s", body, response.Status)
			}
		}
	}
}

// webhookLog returns the lines of all replicas.
func webhookLog(t *testing.T) [][]byte {
	t.Helper()
	var lines [][]byte
	for _, replica := range cluster.Installed.Replicas() {
		log, err := os.ReadFile(replica.LogPath())
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, bytes.Split(log, []byte("\n"))...)
	}
	return lines
}
