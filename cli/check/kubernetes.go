package check

import (
	"context"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// oldest is the first version with matchConditions that need no feature gate.
var oldest = version.MustParseGeneric("1.30")

func checkVersion(_ context.Context, c *cluster) verdict {
	v, err := c.serverVersion()
	switch {
	case err != nil:
		return fail("the API server does not tell its version: %v", err).
			fix("kubectl version")
	case v.LessThan(oldest):
		return fail("it is %s, where matchConditions, the webhook's filter, are missing", v).
			fix("# upgrade to 1.30 or newer", "kubectl version")
	case !minorOf(v).AtLeast(config.OldestVersion):
		return warn("it is %s; gpu-binpacker is tested on %s and newer", v, config.OldestVersion).
			fix("# what is tested: docs/compatibility.md#kubernetes", "kubectl version")
	}
	return ok("%s", v)
}

func checkAdmissionAPI(_ context.Context, c *cluster) verdict {
	const group, resource = "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"
	served, err := c.Kubernetes.Discovery().ServerResourcesForGroupVersion(group)
	if err == nil {
		for i := range served.APIResources {
			if served.APIResources[i].Name == resource {
				return ok("%s", group)
			}
		}
	}
	return fail("%s of %s are not served", resource, group).
		fix("kubectl api-resources --api-group=admissionregistration.k8s.io")
}

func checkModelVersion(ctx context.Context, c *cluster) verdict {
	v, err := c.serverVersion()
	if err != nil {
		return skip("needs GB101")
	}
	server := minorOf(v)
	configured := c.assumed(ctx).Scheduler.KubernetesVersion
	if configured == "" {
		if !config.NewestVersion.AtLeast(server) {
			return ok("%s by the API server; going by the formulas of %s, the newest that is known", server, config.NewestVersion)
		}
		return ok("%s by the API server", server)
	}
	model, err := config.ParseMinorVersion(configured)
	if err != nil {
		return skip("needs GB304")
	}
	if scheduler.SameFormulas(model, server) {
		return ok("configured %s, running %s", model, server)
	}
	return warn("scheduler.kubernetesVersion is %s, but the cluster runs %s, whose scheduler has other formulas, so weights may not win", model, server).
		fix("# remove this line, see docs/operating.md#changing-the-configuration:",
			"kubernetesVersion: \""+configured+"\"")
}

func minorOf(v *version.Version) config.MinorVersion {
	return config.MinorVersion{Major: v.Major(), Minor: v.Minor()}
}

// installedKinds are the kinds of an installation: group, resource and whether
// they live in its namespace.
var installedKinds = []struct {
	group, resource string
	namespaced      bool
}{
	{"", "namespaces", false},
	{"", "configmaps", true},
	{"", "serviceaccounts", true},
	{"", "services", true},
	{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", false},
	{"apps", "deployments", true},
	{"cert-manager.io", "certificates", true},
	{"cert-manager.io", "issuers", true},
	{"networking.k8s.io", "networkpolicies", true},
	{"policy", "poddisruptionbudgets", true},
	{"rbac.authorization.k8s.io", "clusterrolebindings", false},
	{"rbac.authorization.k8s.io", "clusterroles", false},
}

// checkPermissions asks for what `kubectl apply` does with each kind.
func checkPermissions(ctx context.Context, c *cluster) verdict {
	var missing []string
	for _, kind := range installedKinds {
		namespace := ""
		if kind.namespaced {
			namespace = config.SystemNamespace
		}
		for _, verb := range []string{"get", "create", "patch"} {
			allowed, err := c.may(ctx, verb, kind.group, kind.resource, namespace)
			if err != nil {
				return unread("create selfsubjectaccessreviews", err)
			}
			if !allowed {
				missing = append(missing, verb+" "+kind.resource)
			}
		}
	}
	if len(missing) > 0 {
		return fail("you may not %s", few(missing)).
			fix("# have an administrator install; what you may do:",
				"kubectl auth can-i --list -n "+config.SystemNamespace)
	}
	return ok("get, create and patch on %s", terminal.Count(len(installedKinds), "kind"))
}
