package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/cli/check"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// checked runs `gpu-binpacker check` and returns the results that are not OK,
// code -> level, and its exit code.
func checked(t *testing.T, args ...string) (report check.Report, notOK map[string]check.Level, exitCode int) {
	t.Helper()
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	args = append([]string{"check", "--kubeconfig", cluster.Kubeconfig(), "-o", "json"}, args...)
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "gpu-binpacker"), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v in %s, with %s", err, out, stderr.String())
	}
	notOK = map[string]check.Level{}
	for _, result := range report.Results {
		t.Logf("%s %s: %s: %s", result.Code, result.Level, result.Title, result.Message)
		// Calls that failed in other tests, or here when the CA was away, are history.
		if result.Code == "GB306" && result.Level == check.Warning {
			continue
		}
		if result.Level != check.OK {
			notOK[result.Code] = result.Level
		}
	}
	return report, notOK, cmd.ProcessState.ExitCode()
}

// missing is what there is not on a control plane without a kubelet: replicas in
// the Deployment, and Deployments of cert-manager.
var missing = map[string]check.Level{"GB202": check.Warning, "GB305": check.Failure}

// The command finds an installation that works in order, and finds what breaks it.
func TestCheck(t *testing.T) {
	withNodes(t, controlplane.Nodes("checked", 2, node8))
	namespace := optedIn(t, "checked")
	if err := cluster.Installed.WaitSteering(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("in order", func(t *testing.T) {
		_, notOK, exitCode := checked(t, "-n", namespace)
		if diff := cmp.Diff(missing, notOK); diff != "" || exitCode != 1 {
			t.Errorf("exit code %d; results that are not OK (-want +got):\n%s", exitCode, diff)
		}
	})
	t.Run("before an installation", func(t *testing.T) {
		_, notOK, exitCode := checked(t, "--pre")
		if diff := cmp.Diff(map[string]check.Level{"GB202": check.Warning}, notOK); diff != "" || exitCode != 0 {
			t.Errorf("exit code %d; results that are not OK (-want +got):\n%s", exitCode, diff)
		}
	})
	t.Run("without permissions", func(t *testing.T) {
		_, notOK, exitCode := checked(t, "--as", "nobody-in-particular")
		for code, level := range notOK {
			if level != check.Skipped {
				t.Errorf("%s: %s", code, level)
			}
		}
		if exitCode != 0 || notOK["GB301"] != check.Skipped || notOK["GB403"] != check.Skipped {
			t.Errorf("exit code %d, not OK: %v", exitCode, notOK)
		}
	})
	t.Run("without a CA", func(t *testing.T) { checkWithoutCA(t, namespace) })
}

// checkWithoutCA takes the CA away, so that all calls fail, finds that out, and
// does what the command says.
func checkWithoutCA(t *testing.T, namespace string) {
	const annotation = "cert-manager.io/inject-ca-from"
	hook := &admissionregistrationv1.MutatingWebhookConfiguration{}
	key := client.ObjectKey{Name: config.WebhookConfigurationName}
	if err := cluster.Client().Get(t.Context(), key, hook); err != nil {
		t.Fatal(err)
	}
	source := hook.Annotations[annotation]
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := annotate(ctx, hook, annotation, source); err != nil {
			t.Error(err)
		}
		// The tests that follow need it.
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			err := cluster.Client().Get(ctx, key, hook)
			return err == nil && len(hook.Webhooks[0].ClientConfig.CABundle) > 0, err
		})
		if err != nil {
			t.Errorf("the CA is not back: %v", err)
		}
	})
	// Without the annotation cainjector does not put it back.
	removal := fmt.Appendf(nil, `[{"op":"remove","path":"/metadata/annotations/%s"},{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`,
		strings.ReplaceAll(annotation, "/", "~1"))
	if err := cluster.Client().Patch(t.Context(), hook, client.RawPatch(types.JSONPatchType, removal)); err != nil {
		t.Fatal(err)
	}
	report, notOK, exitCode := checked(t, "-n", namespace)
	if exitCode != 1 || notOK["GB205"] != check.Failure || notOK["GB308"] != check.Failure {
		t.Errorf("exit code %d, not OK: %v", exitCode, notOK)
	}
	fix := ""
	for _, result := range report.Results {
		if result.Code == "GB205" {
			fix = strings.Join(result.Fix, "\n")
		}
	}
	if want := annotation + "=" + source; !strings.Contains(fix, want) {
		t.Fatalf("fix %q does not contain %s", fix, want)
	}
	if err := annotate(t.Context(), hook, annotation, source); err != nil {
		t.Fatal(err)
	}
	// It waits for replicas that never come, but sees the CA come back meanwhile.
	_, notOK, _ = checked(t, "-n", namespace, "--wait", "20s")
	if diff := cmp.Diff(missing, notOK); diff != "" {
		t.Errorf("results that are not OK afterwards (-want +got):\n%s", diff)
	}
}

// annotate is what `kubectl annotate` does.
func annotate(ctx context.Context, object client.Object, key, value string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	return cluster.Client().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}
