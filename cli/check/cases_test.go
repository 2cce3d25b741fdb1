package check

import (
	"errors"
	"strings"
	"testing"
	"time"

	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// broken is a cluster that differs from a healthy one, and what one check says.
type broken struct {
	code   string
	change func(*testing.T, *bed)
	level  Level
	// says and fix are parts of the message and of the fix.
	says, fix string
}

// kubernetesCases and certificateCases are the 1xx and 2xx.
func kubernetesCases() map[string]broken {
	return map[string]broken{
		"old API server": {"GB101", func(_ *testing.T, b *bed) {
			b.version = "v1.29.14-gke.100"
		}, Failure, "1.29.14", "upgrade to 1.30"},
		"vendor's version":   {"GB101", func(_ *testing.T, b *bed) { b.version = "v1.34.1-eks-036c24b" }, OK, "1.34.1", ""},
		"version not tested": {"GB101", func(_ *testing.T, b *bed) { b.version = "v1.32.13-gke.1" }, Warning, "tested on " + config.OldestVersion.String(), "compatibility.md#kubernetes"},
		"unreachable": {"GB101", func(_ *testing.T, b *bed) {
			b.broken = map[string]bool{"get version": true}
		}, Failure, "connection refused", "kubectl version"},
		"nothing else then": {"GB205", func(_ *testing.T, b *bed) {
			b.broken = map[string]bool{"get version": true}
		}, Skipped, "does not answer", ""},
		"no admission API": {"GB102", func(_ *testing.T, b *bed) {
			b.served = b.served[1:]
		}, Failure, "not served", "kubectl api-resources"},
		"version found":                {"GB103", func(_ *testing.T, b *bed) { b.version = "v1.35.1-gke.100" }, OK, "1.35 by the API server", ""},
		"version newer than the model": {"GB103", func(_ *testing.T, b *bed) { b.version = "v1.99.0" }, OK, "1.99 by the API server; going by the formulas of", ""},
		"override too new": {"GB103", func(_ *testing.T, b *bed) {
			b.version, b.cfg.Scheduler.KubernetesVersion = "v1.35.2", "1.37"
		}, Warning, "is 1.37, but the cluster runs 1.35", `kubernetesVersion: "1.37"`},
		"override too old": {"GB103", func(_ *testing.T, b *bed) {
			b.version, b.cfg.Scheduler.KubernetesVersion = "v1.36.0", "1.35"
		}, Warning, "other formulas", "remove this line"},
		"override of the same formulas": {"GB103", func(_ *testing.T, b *bed) {
			b.version, b.cfg.Scheduler.KubernetesVersion = "v1.34.9", "1.35"
		}, OK, "configured 1.35, running 1.34", ""},
		"may not install": {"GB104", func(_ *testing.T, b *bed) {
			b.options.Pre, b.denied = true, map[string]bool{"create clusterroles": true}
		}, Failure, "create clusterroles", "kubectl auth can-i"},
		"no cert-manager": {"GB201", func(_ *testing.T, b *bed) {
			b.served = b.served[:1]
		}, Failure, "cert-manager.io/v1 is not served", "helm install cert-manager"},
		"cert-manager unknown": {"GB201", func(_ *testing.T, b *bed) {
			b.broken = map[string]bool{"get resource": true}
		}, Failure, "connection refused", ""},
		"cert-manager down": {"GB202", func(_ *testing.T, b *bed) {
			b.deployments[2].Status.ReadyReplicas = 0
		}, Failure, "cert-manager-cainjector has no ready", "get pods"},
		"no cainjector": {"GB202", func(_ *testing.T, b *bed) {
			b.deployments = b.deployments[:2]
		}, Warning, "cainjector", "kubectl get deployments -A"},
	}
}

func certificateCases() map[string]broken {
	expires := func(in time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(in))) }
	return map[string]broken{
		"not issued": {"GB203", func(_ *testing.T, b *bed) {
			b.certificate.Status.Conditions[0].Status = certmanagermeta.ConditionFalse
			b.certificate.Status.Conditions[0].Message = "issuer not found"
		}, Failure, "gpu-binpacker-serving is not Ready: issuer not found", "describe certificate gpu-binpacker-serving"},
		"not looked at": {"GB203", func(_ *testing.T, b *bed) {
			b.certificate.Status.Conditions = nil
		}, Failure, "has not looked", "describe certificate"},
		"no Certificate": {"GB203", func(_ *testing.T, b *bed) {
			b.certificate = nil
		}, Failure, "there is none", "kubectl apply"},
		"certificates by hand": {"GB203", func(_ *testing.T, b *bed) {
			b.certificate, b.hook.Annotations = nil, nil
		}, Skipped, "not cert-manager's", ""},
		"no CRD": {"GB203", func(_ *testing.T, b *bed) { b.noCRD = true }, Skipped, "needs GB201", ""},
		"expired": {"GB204", func(_ *testing.T, b *bed) {
			b.certificate.Status.NotAfter = expires(-time.Minute)
		}, Failure, "expired on 2026-06-01", "rollout restart deployment cert-manager"},
		"renewal overdue": {"GB204", func(_ *testing.T, b *bed) {
			b.certificate.Status.RenewalTime = expires(-2 * time.Hour)
		}, Warning, "due for renewal on 2026-06-01", "describe certificate"},
		"renewal under way": {"GB204", func(_ *testing.T, b *bed) {
			b.certificate.Status.RenewalTime = expires(-time.Minute)
		}, OK, "2026-07-31", ""},
		"ends soon": {"GB204", func(_ *testing.T, b *bed) {
			b.certificate.Status.RenewalTime, b.certificate.Status.NotAfter = nil, expires(24*time.Hour)
		}, Warning, "expires on 2026-06-02", "describe certificate"},
		"no CA bundle": {"GB205", func(_ *testing.T, b *bed) {
			b.webhook().ClientConfig.CABundle = nil
		}, Failure, "cainjector has not written it", "kubectl -n cert-manager rollout restart deployment cert-manager-cainjector"},
		"no annotation": {"GB205", func(_ *testing.T, b *bed) {
			b.webhook().ClientConfig.CABundle, b.hook.Annotations = nil, nil
		}, Failure, "no annotation", "cert-manager.io/inject-ca-from=gpu-binpacker-system/gpu-binpacker-serving"},
		"CA bundle is no PEM": {"GB205", func(_ *testing.T, b *bed) {
			b.webhook().ClientConfig.CABundle = []byte("Cg==")
		}, Failure, "no certificate", "cainjector"},
		"CA of another":  {"GB206", otherCA, Failure, "unknown authority", "cert-manager-cainjector"},
		"served expired": {"GB206", expiredLeaf, Failure, "expired", "rollout restart deployment cert-manager"},
		"other name":     {"GB206", otherName, Failure, "example.com", "spec.dnsNames"},
		"no Secret": {"GB206", func(_ *testing.T, b *bed) {
			b.secret = nil
		}, Failure, "is not there", "describe certificate"},
		"Secret is forbidden": {"GB206", func(_ *testing.T, b *bed) {
			b.denied = map[string]bool{"get secrets": true}
		}, Skipped, "needs permission to get secret", ""},
	}
}

func otherCA(t *testing.T, b *bed) {
	b.webhook().ClientConfig.CABundle, _ = certificates(t, "x", now.Add(time.Hour))
}

func expiredLeaf(t *testing.T, b *bed) {
	b.webhook().ClientConfig.CABundle, b.secret.Data[corev1.TLSCertKey] = certificates(t, "gpu-binpacker.gpu-binpacker-system.svc", now.Add(-time.Hour))
}

func otherName(t *testing.T, b *bed) {
	b.webhook().ClientConfig.CABundle, b.secret.Data[corev1.TLSCertKey] = certificates(t, "example.com", now.Add(time.Hour))
}

// installationCases are the 3xx but for calls and trial.
func installationCases() map[string]broken {
	return map[string]broken{
		"not installed": {"GB301", func(_ *testing.T, b *bed) {
			b.hook = nil
		}, Failure, "not installed", "kubectl apply -f bin/install.yaml"},
		"others need it": {"GB302", func(_ *testing.T, b *bed) { b.hook = nil }, Skipped, "needs GB301", ""},
		"other webhook": {"GB301", func(_ *testing.T, b *bed) {
			b.webhook().Name = "x.example.com"
		}, Failure, "has no webhook pods.gpu-binpacker.io", "kubectl apply"},
		"fails closed": {"GB302", func(_ *testing.T, b *bed) {
			b.webhook().FailurePolicy = ptr.To(admissionregistrationv1.Fail)
		}, Failure, "refused whenever", `"failurePolicy":"Ignore"`},
		"long timeout": {"GB302", func(_ *testing.T, b *bed) {
			b.webhook().TimeoutSeconds = ptr.To[int32](10)
		}, Warning, "timeoutSeconds is 10", `"timeoutSeconds":1`},
		"name added": {"GB303", func(_ *testing.T, b *bed) {
			b.cfg.Resources.Names = append(b.cfg.Resources.Names, "example.com/gpu")
		}, Failure, "never sent", "match-conditions"},
		"no filter": {"GB303", func(_ *testing.T, b *bed) {
			b.webhook().MatchConditions = nil
		}, Warning, "every pod", "match-conditions"},
		"bad configuration": {"GB304", func(_ *testing.T, b *bed) {
			b.cfgErr = errors.New("ranking.strategy: Invalid")
		}, Failure, "ranking.strategy", "get configmaps"},
		"dry-run mode": {"GB304", func(_ *testing.T, b *bed) {
			b.cfg.Mode = config.ModeDryRun
		}, Warning, "DryRun", "mode: Enforce"},
		"no configuration": {"GB304", func(_ *testing.T, b *bed) {
			b.cfgErr = apierrors.NewNotFound(appsv1.Resource("deployments"), "x")
		}, Skipped, "no installation", ""},
		"replica missing": {"GB305", func(_ *testing.T, b *bed) {
			b.ours().Status.ReadyReplicas = 1
			b.ours().Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionFalse, Message: "no minimum availability"}}
		}, Failure, "1 of 2", "describe pods"},
		"scaled to 0": {"GB305", func(_ *testing.T, b *bed) {
			b.ours().Spec.Replicas = ptr.To[int32](0)
		}, Failure, "scaled to 0", "scale deployment gpu-binpacker --replicas=2"},
		"one replica": {"GB305", func(_ *testing.T, b *bed) {
			b.ours().Spec.Replicas, b.ours().Status.ReadyReplicas = ptr.To[int32](1), 1
		}, Warning, "while it is restarted", "--replicas=2"},
		"no Deployment": {"GB305", func(_ *testing.T, b *bed) {
			b.deployments = b.deployments[1:]
		}, Failure, "no Deployment", "kubectl apply"},
	}
}

func allCases() []map[string]broken {
	return []map[string]broken{
		kubernetesCases(), certificateCases(), installationCases(), callCases(), trialCases(), refusedTrialCases(), additionCases(), namespaceCases(), surroundingCases(),
	}
}

// TestCases runs every broken cluster.
func TestCases(t *testing.T) {
	for _, cases := range allCases() {
		for name, tc := range cases {
			t.Run(tc.code+" "+name, func(t *testing.T) {
				b := healthy(t)
				tc.change(t, b)
				got := find(t, Run(t.Context(), b.clients(t)), tc.code)
				if got.Level != tc.level || !strings.Contains(got.Message, tc.says) {
					t.Errorf("%s: %s\nwant %s: ...%s...", got.Level, got.Message, tc.level, tc.says)
				}
				if fix := strings.Join(got.Fix, "\n"); !strings.Contains(fix, tc.fix) {
					t.Errorf("fix %q does not contain %q", fix, tc.fix)
				}
				// But for what could not be read: the message says what is missing.
				if got.Level == Failure && len(got.Fix) == 0 && !strings.HasPrefix(got.Message, "cannot ") {
					t.Error("there is no fix")
				}
			})
		}
	}
}

func find(t *testing.T, report Report, code string) Result {
	t.Helper()
	for _, result := range report.Results {
		if result.Code == code {
			return result
		}
	}
	t.Fatalf("there is no result %s", code)
	return Result{}
}
