package chart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// withheld are rights that the pod of the test does not get: one Secret holds the
// private key, the ConfigMaps of other namespaces may hold anything, and no namespace
// is named in which to try a pod.
var withheld = []string{"secret", "list configmaps", "create pods"}

// test runs `helm test`. There is no kubelet: the binary runs here, as the pod's
// ServiceAccount and with its arguments, while the pod is there, and then kwok ends
// the pod. What the check finds is tested elsewhere; here it is what it may read.
func (l *life) test(t *testing.T) {
	binary, err := buildProduct(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), helmTimeout)
	defer cancel()
	played := make(chan error, 1)
	var report checkReport
	go func() { played <- l.playPod(ctx, "gpu-binpacker-check", binary, t.TempDir(), &report) }()
	if err := l.helm.Test(); err != nil {
		t.Error(err)
	}
	if err := <-played; err != nil {
		t.Fatal(err)
	}
	if len(report.Results) < 10 {
		t.Errorf("the check has %d results", len(report.Results))
	}
	for _, result := range report.Results {
		if strings.Contains(result.Message, "needs permission") && !slices.ContainsFunc(withheld, func(what string) bool { return strings.Contains(result.Message, what) }) {
			t.Errorf("%s: %s", result.Code, result.Message)
		}
	}
	now, err := inventory(t.Context(), l.cp)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range now {
		if strings.Contains(object, "gpu-binpacker-check") {
			t.Errorf("the test left %s", object)
		}
	}
}

// checkReport is what `gpu-binpacker check -o json` prints, as far as it is of
// interest here.
type checkReport struct {
	Results []struct {
		Code    string `json:"code"`
		Level   string `json:"level"`
		Message string `json:"message"`
	} `json:"results"`
}

// playPod does the kubelet's part for the pod of the test, as soon as it is there.
func (l *life) playPod(ctx context.Context, name, binary, dir string, report *checkReport) error {
	pod := &corev1.Pod{}
	err := wait.PollUntilContextCancel(ctx, waitInterval, true, func(ctx context.Context) (bool, error) {
		err := l.cp.Client().Get(ctx, types.NamespacedName{Namespace: Namespace, Name: name}, pod)
		return err == nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("waiting for pod %s: %w", name, err)
	}
	token, err := l.cp.Clientset().CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName,
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := l.cp.WriteKubeconfig(kubeconfig, &clientcmdapi.AuthInfo{Token: token.Status.Token}); err != nil {
		return err
	}
	args := slices.Concat(pod.Spec.Containers[0].Args, []string{"--output=json", "--kubeconfig=" + kubeconfig})
	// It exits with 1, since no webhook answers here; the results are what counts.
	out, err := exec.CommandContext(ctx, binary, args...).Output()
	if decoded := json.Unmarshal(out, report); decoded != nil {
		return fmt.Errorf("running %v: %w: %s", args, errors.Join(decoded, err), out)
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"0s"}}}`, controlplane.RunsForAnnotation)
	return l.cp.Client().Patch(ctx, pod, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// buildProduct builds the binary, as package installation does.
func buildProduct(ctx context.Context, t *testing.T) (string, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return "", err
	}
	program := programs.Program{
		Name:    "gpu-binpacker",
		Package: "github.com/gpu-binpacker/gpu-binpacker",
		Dir:     root,
		Output:  filepath.Join(root, "bin", "gpu-binpacker"),
	}
	return program.Output, program.Build(ctx, t.Output())
}
