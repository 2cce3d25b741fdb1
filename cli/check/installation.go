package check

import (
	"context"
	"errors"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// longestTimeout in seconds: each GPU pod waits that long when the webhook cannot
// be reached. The manifests have 1.
const longestTimeout = 2

// apply is the command of the README that installs.
const apply = "kubectl apply -f bin/install.yaml"

func checkRegistered(ctx context.Context, c *cluster) verdict {
	_, webhook, err := c.webhook(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return fail("there is no MutatingWebhookConfiguration %s: gpu-binpacker is not installed", config.WebhookConfigurationName).fix(apply)
	case errors.Is(err, errNotRegistered):
		return fail("%s: %v", config.WebhookConfigurationName, err).fix(apply)
	case err != nil:
		return unread("get mutatingwebhookconfigurations", err)
	}
	return ok("%s, %s", config.WebhookConfigurationName, webhook.Name)
}

func checkFailsOpen(ctx context.Context, c *cluster) verdict {
	_, webhook, err := c.webhook(ctx)
	if err != nil {
		return needsWebhook(err)
	}
	policy, timeout := admissionregistrationv1.Fail, int32(10) // what the API server takes for none
	if webhook.FailurePolicy != nil {
		policy = *webhook.FailurePolicy
	}
	if webhook.TimeoutSeconds != nil {
		timeout = *webhook.TimeoutSeconds
	}
	switch {
	case policy != admissionregistrationv1.Ignore:
		return fail("failurePolicy is %s: GPU pods are refused whenever the webhook cannot be called", policy).
			fix(patchWebhook("failurePolicy", `"Ignore"`)...)
	case timeout > longestTimeout:
		return warn("timeoutSeconds is %d: so long each GPU pod waits when the webhook cannot be reached", timeout).
			fix(patchWebhook("timeoutSeconds", "1")...)
	}
	return ok("failurePolicy %s, timeout %d s", policy, timeout)
}

// patchWebhook is a command that sets a field of the webhook.
func patchWebhook(field, value string) []string {
	return []string{
		"kubectl patch mutatingwebhookconfiguration " + config.WebhookConfigurationName + ` \`,
		`  -p '{"webhooks":[{"name":"` + config.WebhookName + `","` + field + `":` + value + `}]}'`,
	}
}

// checkMatchConditions compares the two places where resource names are.
func checkMatchConditions(ctx context.Context, c *cluster) verdict {
	_, webhook, err := c.webhook(ctx)
	if err != nil {
		return needsWebhook(err)
	}
	cfg, err := c.configuration(ctx)
	if err != nil {
		return skip("needs GB304")
	}
	fixes := []string{
		"gpu-binpacker match-conditions --config configuration.yaml > patch.yaml",
		"kubectl patch mutatingwebhookconfiguration " + config.WebhookConfigurationName + " --patch-file patch.yaml",
	}
	if len(webhook.MatchConditions) == 0 {
		return warn("there are no matchConditions: the webhook is called for every pod of opted-in namespaces").fix(fixes...)
	}
	for _, want := range config.MatchConditions(cfg.Resources) {
		found := false
		for _, got := range webhook.MatchConditions {
			found = found || got == want
		}
		if !found {
			return fail("matchConditions are not those of resources.names and resources.prefixes: some GPU pods are never sent to the webhook").fix(fixes...)
		}
	}
	return ok("those of the configuration, %s and by prefix %d", terminal.Count(len(cfg.Resources.Names), "name"), len(cfg.Resources.Prefixes))
}

func checkConfiguration(ctx context.Context, c *cluster) verdict {
	cfg, err := c.configuration(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return skip("there is no installation whose configuration could be read")
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return unread("get the Deployment and its ConfigMap in "+c.systemNamespace(ctx), err)
	case err != nil:
		return fail("%v", err).
			fix("kubectl -n " + c.systemNamespace(ctx) + " get configmaps -l app.kubernetes.io/name=gpu-binpacker -o yaml")
	case cfg.Mode == config.ModeDryRun:
		return warn("mode is DryRun: decisions are made and shown, but have no effect").
			fix("# in the configuration, see docs/operating.md#changing-the-configuration", "mode: Enforce")
	}
	return ok("mode %s, strategy %s", cfg.Mode, cfg.Ranking.Strategy)
}

func checkReplicas(ctx context.Context, c *cluster) verdict {
	deployment, err := c.deployment(ctx)
	if apierrors.IsNotFound(err) {
		return fail("there is no Deployment with label app.kubernetes.io/name=gpu-binpacker in %s", c.systemNamespace(ctx)).fix(apply)
	}
	if err != nil {
		return unread("list deployments in "+c.systemNamespace(ctx), err)
	}
	desired, ready := int32(1), deployment.Status.ReadyReplicas
	if deployment.Spec.Replicas != nil {
		desired = *deployment.Spec.Replicas
	}
	kubectl := "kubectl -n " + deployment.Namespace
	switch {
	case desired == 0:
		return fail("the Deployment is scaled to 0").fix(kubectl + " scale deployment " + deployment.Name + " --replicas=2")
	case ready < desired:
		return fail("%d of %d", ready, desired).detail(conditions(deployment)...).
			fix(kubectl+" get pods", kubectl+" describe pods")
	case desired == 1:
		return warn("1 of 1: pods are not steered while it is restarted").
			fix(kubectl + " scale deployment " + deployment.Name + " --replicas=2")
	}
	return ok("%d of %d", ready, desired)
}

// conditions says what the Deployment's controller complains of.
func conditions(deployment *appsv1.Deployment) []string {
	var lines []string
	for _, condition := range deployment.Status.Conditions {
		bad := condition.Status != "True"
		if condition.Type == appsv1.DeploymentReplicaFailure {
			bad = condition.Status == "True"
		}
		if bad && condition.Message != "" {
			lines = append(lines, condition.Message)
		}
	}
	return lines
}
