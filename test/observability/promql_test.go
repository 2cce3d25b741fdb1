package observability

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// scrapeLabels are those that Prometheus adds, and alerts' own.
var scrapeLabels = set("instance", "alertname", "alertstate", "severity")

// problems returns what is wrong with an expression: it does not parse, names a
// metric or label that does not exist, or treats a counter as a gauge or the
// other way round.
func problems(expression string, known map[string]metric) []string {
	root, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	available := map[string]bool{}
	parser.Inspect(root, func(node parser.Node, path []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			m, exists := known[selector.Name]
			if !exists {
				found = append(found, fmt.Sprintf("no metric %s", selector.Name))
				return nil
			}
			maps.Copy(available, m.labels)
			found = append(found, unknownMatchers(selector, m)...)
			if rated, counter := isRated(path), m.kind == dto.MetricType_COUNTER; rated != counter && !isRejectionCount(selector) {
				found = append(found, fmt.Sprintf("%s is a %v, inside of rate or increase: %v", selector.Name, m.kind, rated))
			}
		}
		return nil
	})
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		for _, label := range grouping(node) {
			if !available[label] && !scrapeLabels[label] {
				found = append(found, fmt.Sprintf("no label %s to group by", label))
			}
		}
		return nil
	})
	return found
}

func unknownMatchers(selector *parser.VectorSelector, m metric) []string {
	var found []string
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name != model.MetricNameLabel && !m.labels[matcher.Name] && !scrapeLabels[matcher.Name] {
			found = append(found, fmt.Sprintf("%s has no label %s", selector.Name, matcher.Name))
		}
	}
	return found
}

func isRated(path []parser.Node) bool {
	return slices.ContainsFunc(path, func(n parser.Node) bool {
		call, ok := n.(*parser.Call)
		return ok && (call.Func.Name == "rate" || call.Func.Name == "increase")
	})
}

// isRejectionCount: whether a series of it is new is a question to the counter
// itself.
func isRejectionCount(selector *parser.VectorSelector) bool {
	return selector.Name == "apiserver_admission_webhook_rejection_count"
}

// grouping returns the labels that a node groups or matches by.
func grouping(node parser.Node) []string {
	switch node := node.(type) {
	case *parser.AggregateExpr:
		return node.Grouping
	case *parser.BinaryExpr:
		if node.VectorMatching != nil {
			return slices.Concat(node.VectorMatching.MatchingLabels, node.VectorMatching.Include)
		}
	}
	return nil
}

// What the checks of this package cannot find, they cannot guard.
func TestProblems(t *testing.T) {
	cases := map[string]struct {
		expression string
		want       []string
	}{
		"good":             {"sum by (reason) (rate(c[5m])) > 0 and max by (instance) (g) > 1", nil},
		"syntax":           {"sum(g", []string{"parse error: unclosed left parenthesis"}},
		"metric":           {"max(gone)", []string{"no metric gone"}},
		"matcher":          {`max(g{reason="x"})`, []string{"g has no label reason"}},
		"grouping":         {"max by (where) (g)", []string{"no label where to group by"}},
		"matching":         {"g / on (where) g", []string{"no label where to group by"}},
		"counter as gauge": {"max(c)", []string{"c is a COUNTER, inside of rate or increase: false"}},
		"gauge as counter": {"max(rate(g[5m]))", []string{"g is a GAUGE, inside of rate or increase: true"}},
	}
	all := map[string]metric{
		"c": {kind: dto.MetricType_COUNTER, labels: set("reason")},
		"g": {kind: dto.MetricType_GAUGE, labels: set()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := problems(tc.expression, all)
			for i := range got {
				got[i] = regexp.MustCompile(`^\d+:\d+: `).ReplaceAllString(got[i], "")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

var inlineQuery = regexp.MustCompile("`((?:sum|max|min)[ (][^`]*gpu_binpacker_[^`]*)`")

// Queries in the documentation are for copying.
func TestDocumentedQueries(t *testing.T) {
	all := known(t)
	found := 0
	for _, document := range []string{"README.md", "docs/operating.md", "docs/runbooks.md", "docs/compatibility.md", "docs/security.md"} {
		for _, match := range inlineQuery.FindAllStringSubmatch(read(t, document), -1) {
			found++
			for _, problem := range problems(match[1], all) {
				t.Errorf("%s: %s: %s", document, match[1], problem)
			}
		}
	}
	if found < 2 {
		t.Errorf("found %d queries in the documentation", found)
	}
}

var metricName = regexp.MustCompile("`((?:gpu_binpacker|apiserver_admission)_[a-z_]+)")

// Names of metrics in the documentation exist.
func TestDocumentedNames(t *testing.T) {
	all := merged(ours(t), others)
	for _, document := range []string{"README.md", "docs/operating.md", "docs/runbooks.md", "docs/compatibility.md", "docs/security.md"} {
		for _, match := range metricName.FindAllStringSubmatch(read(t, document), -1) {
			if _, ok := all[match[1]]; !ok && !strings.HasSuffix(match[1], "_") {
				t.Errorf("%s names %s, which does not exist", document, match[1])
			}
		}
	}
}
