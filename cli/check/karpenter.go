package check

import (
	"context"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// karpenterOldest is the first version that provisions for pods with preferred
// node-affinity terms.
var karpenterOldest = version.MustParseGeneric("1.5")

func checkKarpenter(ctx context.Context, c *cluster) verdict {
	all, err := c.deployments(ctx)
	if err != nil {
		return unread("list deployments", err)
	}
	deployment := named(all, "karpenter")
	if deployment == nil {
		return ok("there is none")
	}
	show := "kubectl -n " + deployment.Namespace + " get deployment " + deployment.Name + " -o wide"
	for _, candidate := range versionsOf(deployment) {
		v, err := version.ParseGeneric(candidate)
		if err != nil {
			continue
		}
		if v.LessThan(karpenterOldest) {
			return warn("it is %s, which makes no nodes for pods with preferred node-affinity terms: upgrade it, or do not opt in", v).fix(show)
		}
		return ok("%s", v)
	}
	return warn("Deployment %s/%s does not tell its version", deployment.Namespace, deployment.Name).fix(show)
}

// versionsOf returns what may be the version of a Deployment, the surest first.
func versionsOf(deployment *appsv1.Deployment) []string {
	versions := []string{deployment.Labels["app.kubernetes.io/version"]}
	for i := range deployment.Spec.Template.Spec.Containers {
		image, _, _ := strings.Cut(deployment.Spec.Template.Spec.Containers[i].Image, "@")
		image = image[strings.LastIndex(image, "/")+1:]
		if _, tag, found := strings.Cut(image, ":"); found {
			versions = append(versions, tag)
		}
	}
	return versions
}
