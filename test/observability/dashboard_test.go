package observability

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
)

const dashboardFile = "config/grafana/dashboard.json"

// dashboard has the fields of Grafana's JSON model that the tests look at.
type dashboard struct {
	UID           string  `json:"uid"`
	Title         string  `json:"title"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Templating    struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		X, Y, W, H int
	} `json:"gridPos"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

func decodedDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &d); err != nil {
		t.Fatalf("%s: %v", dashboardFile, err)
	}
	if d.UID == "" || d.SchemaVersion < 38 { // that of Grafana 10.0
		t.Errorf("uid %q, schema version %d", d.UID, d.SchemaVersion)
	}
	return d
}

// withValues replaces Grafana's variables by what they may stand for.
var withValues = strings.NewReplacer("$__rate_interval", "5m", "$resource", "nvidia.com/gpu|amd.com/gpu").Replace

func TestDashboardQueries(t *testing.T) {
	all := known(t)
	queries := 0
	for _, p := range decodedDashboard(t).Panels {
		for _, target := range p.Targets {
			queries++
			expr := withValues(target.Expr)
			for _, problem := range append(problems(expr, all), notMax(t, expr)...) {
				t.Errorf("%s: %s: %s", p.Title, target.Expr, problem)
			}
		}
	}
	if queries < 20 {
		t.Errorf("found %d queries", queries)
	}
}

// notMax finds metrics that every replica shows for the whole cluster and that are
// aggregated in another way than by their maximum.
func notMax(t *testing.T, expression string) []string {
	t.Helper()
	root, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		return nil // reported elsewhere
	}
	var found []string
	parser.Inspect(root, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok || !strings.HasPrefix(selector.Name, "gpu_binpacker_gpu") && selector.Name != "gpu_binpacker_largest_fitting_request" {
			return nil
		}
		if len(path) > 0 {
			if parent, is := path[len(path)-1].(*parser.AggregateExpr); is && parent.Op == parser.MAX {
				return nil
			}
		}
		found = append(found, fmt.Sprintf("%s is not under max", selector.Name))
		return nil
	})
	return found
}

func TestNotMax(t *testing.T) {
	for expression, want := range map[string]int{
		"sum(max by (resource) (gpu_binpacker_gpus_free))": 0,
		"sum(gpu_binpacker_gpus_free)":                     1,
		"gpu_binpacker_largest_fitting_request":            1,
		"sum(gpu_binpacker_index_synced)":                  0,
	} {
		if got := notMax(t, expression); len(got) != want {
			t.Errorf("%s: %v, want %d", expression, got, want)
		}
	}
}

func TestDashboardVariables(t *testing.T) {
	values := regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
	types := map[string]string{}
	for _, v := range decodedDashboard(t).Templating.List {
		types[v.Name] = v.Type
		if v.Type != "query" {
			continue
		}
		match := values.FindStringSubmatch(v.Definition)
		if len(match) == 0 || !known(t)[match[1]].labels[match[2]] {
			t.Errorf("variable %s: %s", v.Name, v.Definition)
		}
	}
	if diff := cmp.Diff(map[string]string{"datasource": "datasource", "resource": "query"}, types); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// A dashboard is for every Grafana: no data source is named but the chosen one.
func TestDashboardDataSources(t *testing.T) {
	var decoded any
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &decoded); err != nil {
		t.Fatal(err)
	}
	found := 0
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch value := value.(type) {
		case map[string]any:
			if source, ok := value["datasource"]; ok {
				found++
				want := map[string]any{"type": "prometheus", "uid": "${datasource}"}
				if diff := cmp.Diff(want, source); diff != "" {
					t.Errorf("%s (-want +got):\n%s", path, diff)
				}
			}
			for key, child := range value {
				walk(path+"."+key, child)
			}
		case []any:
			for i, child := range value {
				walk(fmt.Sprintf("%s[%d]", path, i), child)
			}
		}
	}
	walk("dashboard", decoded)
	if found < 40 {
		t.Errorf("found %d data sources", found)
	}
}

func TestDashboardPanels(t *testing.T) {
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range decodedDashboard(t).Panels {
		if other, taken := ids[p.ID]; taken || p.ID == 0 {
			t.Errorf("%s has the id %d of %q", p.Title, p.ID, other)
		}
		ids[p.ID] = p.Title
		if p.GridPos.W < 1 || p.GridPos.H < 1 || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("%s is at %+v", p.Title, p.GridPos)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, taken := cells[cell]; taken {
					t.Fatalf("%s covers %s", p.Title, other)
				}
				cells[cell] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || len(p.Description) < 20 || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d lacks something: title %q, description %q, unit %q, %d queries",
				p.ID, p.Title, p.Description, p.FieldConfig.Defaults.Unit, len(p.Targets))
		}
	}
}
