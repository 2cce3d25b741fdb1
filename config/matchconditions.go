package config

import (
	"fmt"
	"strconv"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// MatchConditions returns the webhook's matchConditions for the configured
// resource names. The API server evaluates them before it calls us, so that pods
// without a GPU never pay for the webhook. They are generated from the same
// names as the decision, since a name in only one of the two would do nothing,
// silently.
//
// Limits suffice: the API server refuses an extended resource that is requested
// without an equal limit, and pod-level resources cannot hold one.
func MatchConditions(r Resources) []admissionregistrationv1.MatchCondition {
	var tests []string
	if len(r.Names) > 0 {
		quoted := make([]string, len(r.Names))
		for i, name := range r.Names {
			quoted[i] = strconv.Quote(name)
		}
		tests = append(tests, fmt.Sprintf("r in [%s]", strings.Join(quoted, ", ")))
	}
	for _, prefix := range r.Prefixes {
		tests = append(tests, fmt.Sprintf("r.startsWith(%s)", strconv.Quote(prefix)))
	}
	inContainers := func(list string) string {
		return fmt.Sprintf("(has(object.spec.%s) && object.spec.%s.exists(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(r, %s)))",
			list, list, strings.Join(tests, " || "))
	}
	return []admissionregistrationv1.MatchCondition{{
		Name:       "requests-gpu",
		Expression: inContainers("containers") + " || " + inContainers("initContainers"),
	}}
}
