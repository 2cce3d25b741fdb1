package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// permissions are all that the webhook may do beyond what every ServiceAccount
// may: "verb resource.group".
var permissions = []string{
	"create subjectaccessreviews.authorization.k8s.io",
	"create tokenreviews.authentication.k8s.io",
	"list namespaces", "list nodes", "list pods",
	"watch namespaces", "watch nodes", "watch pods",
}

// knownVerbs are the verbs that mean something to the API server, besides those
// that discovery names.
var knownVerbs = []string{
	"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*",
	"impersonate", "bind", "escalate", "approve", "sign", "attest", "use",
}

// account is a ServiceAccount as the authorizer sees it.
type account struct{ namespace, name string }

func (a account) user() string {
	return "system:serviceaccount:" + a.namespace + ":" + a.name
}

func (a account) groups() []string {
	return []string{"system:serviceaccounts", "system:serviceaccounts:" + a.namespace, "system:authenticated"}
}

var (
	ourAccount = account{config.SystemNamespace, "gpu-binpacker"}
	// anyAccount has the rights that every ServiceAccount of our namespace has.
	anyAccount = account{config.SystemNamespace, "of-nobody"}
)

// may asks the authorizer.
func (a account) may(t *testing.T, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	t.Helper()
	spec.User, spec.Groups = a.user(), a.groups()
	review, err := cluster.Clientset().AuthorizationV1().SubjectAccessReviews().
		Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// The webhook may do what it needs and nothing else, for every resource that the
// API server has and every verb.
func TestPermissionsOnResources(t *testing.T) {
	// A right in one namespace only would be one too many as well.
	scopes := []string{metav1.NamespaceAll, config.SystemNamespace}
	var mu sync.Mutex
	found, asked := map[string]bool{}, 0
	group := errgroup.Group{}
	group.SetLimit(8)
	for _, attributes := range everyRequest(t) {
		group.Go(func() error {
			for _, scope := range scopes {
				attributes.Namespace = scope
				spec := authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &attributes}
				ours, err := ourAccount.may(t, spec)
				if err != nil {
					return err
				}
				anyones := false
				if ours {
					if anyones, err = anyAccount.may(t, spec); err != nil {
						return err
					}
				}
				mu.Lock()
				asked++
				name := permission(attributes.Verb, attributes.Group, attributes.Resource, attributes.Subresource)
				if ours && !anyones && (scope == metav1.NamespaceAll || !found[name]) {
					found[strings.TrimSuffix(name+" in "+scope, " in ")] = true
				}
				mu.Unlock()
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(permissions, slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
	t.Logf("%d questions asked", asked)
	if asked < 2000 {
		t.Errorf("%d questions asked: discovery is incomplete", asked)
	}
}

// everyRequest returns every verb on every resource and subresource, and on all.
func everyRequest(t *testing.T) []authorizationv1.ResourceAttributes {
	t.Helper()
	_, lists, err := cluster.Clientset().Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	requests := map[authorizationv1.ResourceAttributes]bool{}
	add := func(group, resource, subresource string, verbs []string) {
		for _, verb := range verbs {
			requests[authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: subresource, Verb: verb}] = true
		}
	}
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group = ""
		}
		for i := range list.APIResources {
			resource, subresource, _ := strings.Cut(list.APIResources[i].Name, "/")
			add(group, resource, subresource, append(slices.Clone(knownVerbs), list.APIResources[i].Verbs...))
			add(group, resource, "*", knownVerbs)
		}
		add(group, "*", "", knownVerbs)
	}
	add("*", "*", "", knownVerbs)
	// Not in discovery, but asked for by the API server itself.
	for _, virtual := range []string{"users", "groups", "userextras", "uids"} {
		add("", virtual, "", knownVerbs)
	}
	return slices.Collect(maps.Keys(requests))
}

func permission(verb, group, resource, subresource string) string {
	name := resource
	if subresource != "" {
		name += "/" + subresource
	}
	if group != "" {
		name += "." + group
	}
	return verb + " " + name
}

// Nor do its rules name anything that this API server does not have.
func TestPermissionRules(t *testing.T) {
	ours, anyones := rules(t, ourAccount), rules(t, anyAccount)
	maps.DeleteFunc(ours, func(rule string, _ bool) bool { return anyones[rule] })
	if diff := cmp.Diff(permissions, slices.Sorted(maps.Keys(ours))); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// rules returns what the rules of an account allow it in its namespace.
func rules(t *testing.T, a account) map[string]bool {
	t.Helper()
	restConfig := cluster.RESTConfig()
	restConfig.Impersonate = rest.ImpersonationConfig{UserName: a.user(), Groups: a.groups()}
	clientset, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: a.namespace}}
	review, err = clientset.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, rule := range review.Status.ResourceRules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					name := permission(verb, group, resource, "")
					if len(rule.ResourceNames) > 0 {
						name += fmt.Sprint(" ", rule.ResourceNames)
					}
					all[name] = true
				}
			}
		}
	}
	for _, rule := range review.Status.NonResourceRules {
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				all[verb+" "+url] = true
			}
		}
	}
	return all
}

// tokenRequest asks for a token with the shortest lifetime there is.
func tokenRequest() *authenticationv1.TokenRequest {
	seconds := int64(600)
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
}
