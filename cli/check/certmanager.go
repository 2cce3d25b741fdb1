package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	certmanagermeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
)

// nameLabel is the label by which charts and manifests name what they install.
const nameLabel = "app.kubernetes.io/name"

// The parts of cert-manager that an installation depends on.
const (
	controllerName = "cert-manager"
	cainjectorName = "cainjector"
)

// renewalGrace is how late a renewal may be before something must be wrong:
// cert-manager retries a failed one after an hour.
const renewalGrace = time.Hour

// expiresSoon is used where cert-manager does not say when it will renew.
const expiresSoon = 14 * 24 * time.Hour

func checkCertManager(_ context.Context, c *cluster) verdict {
	group := certmanagerv1.SchemeGroupVersion.String()
	_, err := c.Kubernetes.Discovery().ServerResourcesForGroupVersion(group)
	if apierrors.IsNotFound(err) {
		return fail("%s is not served; without cert-manager nobody issues the webhook's certificate", group).
			fix(`helm install cert-manager oci://quay.io/jetstack/charts/cert-manager \`,
				`  --namespace cert-manager --create-namespace --set crds.enabled=true`)
	}
	if err != nil {
		return unread("read what "+group+" serves", err)
	}
	return ok("%s", group)
}

func checkCertManagerRuns(ctx context.Context, c *cluster) verdict {
	all, err := c.deployments(ctx)
	if err != nil {
		return unread("list deployments", err)
	}
	var ready, missing []string
	for _, name := range []string{controllerName, cainjectorName} {
		deployment := named(all, name)
		switch {
		case deployment == nil:
			missing = append(missing, name)
		case deployment.Status.ReadyReplicas == 0:
			return fail("Deployment %s/%s has no ready replica", deployment.Namespace, deployment.Name).
				fix("kubectl -n "+deployment.Namespace+" get pods",
					"kubectl -n "+deployment.Namespace+" describe deployment "+deployment.Name)
		default:
			ready = append(ready, deployment.Namespace+"/"+deployment.Name)
		}
	}
	if len(missing) > 0 {
		return warn("found no Deployment with label %s=%s; cert-manager issues the certificate, its cainjector tells the API server the CA",
			nameLabel, strings.Join(missing, " or ")).
			fix("kubectl get deployments -A -l '" + nameLabel + " in (" + strings.Join(missing, ",") + ")'")
	}
	return ok("%s", strings.Join(ready, ", "))
}

// named returns the Deployment with that app.kubernetes.io/name, if there is one.
func named(all []appsv1.Deployment, name string) *appsv1.Deployment {
	for i := range all {
		if all[i].Labels[nameLabel] == name {
			return &all[i]
		}
	}
	return nil
}

// restart is the command that restarts a part of cert-manager.
func (c *cluster) restart(ctx context.Context, part string) string {
	namespace, name := "cert-manager", "cert-manager-"+part
	if all, err := c.deployments(ctx); err == nil {
		if deployment := named(all, part); deployment != nil {
			namespace, name = deployment.Namespace, deployment.Name
		}
	}
	return fmt.Sprintf("kubectl -n %s rollout restart deployment %s", namespace, name)
}

// issued returns the Certificates, or why there are none to look at.
func issued(ctx context.Context, c *cluster) ([]certmanagerv1.Certificate, *verdict) {
	hook, _, err := c.webhook(ctx)
	if err != nil {
		v := needsWebhook(err)
		return nil, &v
	}
	all, err := c.certificates(ctx)
	source := hook.Annotations[certmanagerv1.WantInjectAnnotation]
	var v verdict
	switch {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		v = skip("needs GB201")
	case err != nil:
		v = unread("list certificates in "+c.systemNamespace(ctx), err)
	case len(all) == 0 && source == "":
		v = skip("neither a Certificate nor the annotation %s: certificates are not cert-manager's here", certmanagerv1.WantInjectAnnotation)
	case len(all) == 0:
		v = fail("there is none in %s, but the webhook names %s", c.systemNamespace(ctx), source).
			fix("kubectl apply -f bin/install.yaml")
	default:
		slices.SortFunc(all, func(a, b certmanagerv1.Certificate) int { return strings.Compare(a.Name, b.Name) })
		return all, nil
	}
	return nil, &v
}

func checkCertificatesReady(ctx context.Context, c *cluster) verdict {
	all, v := issued(ctx, c)
	if v != nil {
		return *v
	}
	var names []string
	for i := range all {
		if why := notReady(&all[i]); why != "" {
			return fail("%s is not Ready: %s", all[i].Name, why).
				fix("kubectl -n "+all[i].Namespace+" describe certificate "+all[i].Name,
					"kubectl -n "+all[i].Namespace+" get certificaterequests")
		}
		names = append(names, all[i].Name)
	}
	return ok("%s", strings.Join(names, ", "))
}

// notReady says why a Certificate is not Ready, empty when it is.
func notReady(certificate *certmanagerv1.Certificate) string {
	for _, condition := range certificate.Status.Conditions {
		if condition.Type == certmanagerv1.CertificateConditionReady {
			if condition.Status == certmanagermeta.ConditionTrue {
				return ""
			}
			return condition.Message
		}
	}
	return "cert-manager has not looked at it yet"
}

func checkCertificatesRenewed(ctx context.Context, c *cluster) verdict {
	all, v := issued(ctx, c)
	if v != nil {
		return *v
	}
	now := c.Now()
	var ends []string
	for i := range all {
		status := all[i].Status
		fixes := []string{
			"kubectl -n " + all[i].Namespace + " describe certificate " + all[i].Name,
			c.restart(ctx, controllerName),
		}
		switch {
		case status.NotAfter == nil:
			return skip("%s has not been issued yet, see GB203", all[i].Name)
		case !now.Before(status.NotAfter.Time):
			return fail("%s expired on %s", all[i].Name, day(status.NotAfter.Time)).fix(fixes...)
		case status.RenewalTime != nil && now.After(status.RenewalTime.Add(renewalGrace)):
			return warn("%s was due for renewal on %s and expires on %s", all[i].Name, day(status.RenewalTime.Time), day(status.NotAfter.Time)).fix(fixes...)
		case status.RenewalTime == nil && status.NotAfter.Sub(now) < expiresSoon:
			return warn("%s expires on %s", all[i].Name, day(status.NotAfter.Time)).fix(fixes...)
		}
		ends = append(ends, day(status.NotAfter.Time))
	}
	return ok("the first expires on %s", slices.Min(ends))
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
