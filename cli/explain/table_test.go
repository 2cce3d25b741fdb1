package explain

import (
	"bytes"
	"strings"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// Nodes in back-off are grouped by for whom they are.
func TestBackoffTexts(t *testing.T) {
	e := &Explanation{LeftOut: []scoring.LeftOutNode{
		{Name: "g1", Reason: nodes.Backoff, Backoff: &index.Rule{}},
		{Name: "g2", Reason: nodes.Backoff, Backoff: &index.Rule{Namespace: true}},
		{Name: "g3", Reason: nodes.Backoff, Backoff: &index.Rule{Namespace: true}},
		{Name: "g4", Reason: nodes.Backoff, Backoff: &index.Rule{Namespace: true, Requests: true}},
	}}
	for name, tc := range map[string]struct {
		all  bool
		want []string
	}{
		"grouped": {want: []string{
			"2 refused GPU pods a moment ago, of this namespace g2, ...",
			"1 refused GPU pods a moment ago g1",
			"1 refused GPU pods a moment ago, of this namespace, with these requests g4",
		}},
		"each": {all: true, want: []string{
			"g1 refused GPU pods a moment ago",
			"g2 refused GPU pods a moment ago, of this namespace",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			v := &View{Out: &out, All: tc.all}
			v.printLeftOut(e)
			lines := strings.Split(out.String(), "\n")
			for i, line := range lines {
				lines[i] = strings.Join(strings.Fields(line), " ")
			}
			for _, want := range tc.want {
				found := false
				for _, line := range lines {
					found = found || line == want
				}
				if !found {
					t.Errorf("no line %q in\n%s", want, out.String())
				}
			}
		})
	}
}
