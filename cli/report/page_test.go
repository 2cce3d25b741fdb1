package report

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/simulate"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// largeReport is one of a cluster with so many nodes.
func largeReport(t testing.TB, count int) *Report {
	t.Helper()
	var nodes []corev1.Node
	var pods []corev1.Pod
	for i := range count {
		name := fmt.Sprintf("ip-10-0-%d-%d.eu-central-1.compute.internal", i/256, i%256)
		nodes = append(nodes, node(name, of(nvidia, "8"), map[string]string{corev1.LabelInstanceTypeStable: "p5.48xlarge"}))
		pods = append(pods, pod(fmt.Sprintf("p%d", i), name, of(nvidia, "2")))
	}
	return newReport(t, &Input{State: state.New(taken, nil, nodes, pods), Source: "the cluster"}, nil)
}

// A page of the largest cluster that Kubernetes supports can still be mailed.
func TestPageSize(t *testing.T) {
	r := largeReport(t, 50)
	// Drawing is what is tested here: the same nodes, a hundred times.
	for i := range r.Scenarios {
		var nodes []simulate.Node
		for j := range 100 {
			for _, n := range r.Scenarios[i].Nodes {
				n.Name += fmt.Sprintf("-%02d", j)
				nodes = append(nodes, n)
			}
		}
		r.Scenarios[i].Nodes = nodes
	}
	var out bytes.Buffer
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 5<<20 {
		t.Errorf("%d bytes for 5,000 nodes", out.Len())
	}
	if got := strings.Count(out.String(), "<i class="); got < 15000 {
		t.Errorf("%d nodes are drawn, of 3 times 5,000", got)
	}
}

// The page loads nothing and runs nothing, and names do not become markup.
func TestPageIsSelfContained(t *testing.T) {
	var out bytes.Buffer
	in := example()
	in.Source = "state file <b>.yaml"
	if err := newReport(t, in, nil).WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, bad := range []string{"<script", "<link", "src=", "url(", "@import", "http:", "https:", "ZgotmplZ", "<b>"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	for _, want := range []string{"&lt;b&gt;.yaml", `role="img"`, `tabindex="0"`, `lang="en"`, "prefers-color-scheme", `name="viewport"`, "simulation"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// Every node is drawn in each scenario with as many squares as it has GPUs.
func TestPageDrawsEveryNode(t *testing.T) {
	var out bytes.Buffer
	r := newReport(t, example(), nil)
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`style="--n:8;--u:2" title="n1: 2 of 8 used"`,
		`class="out" style="--n:8;--u:1" title="n4: 1 of 8 used, cordoned"`,
		`style="--n:16;--u:2" title="mig-1: 5 of 56 used"`, // 5 of 56 is more than 1 of 16
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if got := strings.Count(out.String(), `title="n3: `); got != len(r.Scenarios) {
		t.Errorf("n3 is drawn %d times", got)
	}
}

func TestScale(t *testing.T) {
	for _, tc := range []struct{ allocated, allocatable, wantUsed, wantTotal int64 }{
		{0, 8, 0, 8}, {8, 8, 8, 8}, {9, 8, 8, 8}, {16, 16, 16, 16},
		{0, 80, 0, 16}, {1, 80, 1, 16}, {79, 80, 15, 16}, {80, 80, 16, 16}, {40, 80, 8, 16},
	} {
		n := simulate.Node{Name: "n", GPUs: []simulate.GPUs{{Resource: nvidia, Allocatable: tc.allocatable, Allocated: tc.allocated}}}
		if c := cells(&n)[0]; c.Used != tc.wantUsed || c.Total != tc.wantTotal {
			t.Errorf("%d of %d: %d of %d squares, not %d of %d", tc.allocated, tc.allocatable, c.Used, c.Total, tc.wantUsed, tc.wantTotal)
		}
	}
}

var cssVariable = regexp.MustCompile(`--(\w+): (#[0-9a-f]+)`)

// Text and drawing can be told from what is behind them, in the light and in the
// dark (WCAG 2.2: 4.5 for text, 3 for graphics).
func TestPageContrast(t *testing.T) {
	themes := regexp.MustCompile(`:root \{[^}]*--text[^}]*\}`).FindAllString(pageText, -1)
	if len(themes) != 2 {
		t.Fatalf("%d colour themes", len(themes))
	}
	for i, theme := range themes {
		color := map[string]float64{}
		for _, m := range cssVariable.FindAllStringSubmatch(theme, -1) {
			color[m[1]] = luminance(t, m[2])
		}
		for _, tc := range []struct {
			a, b string
			want float64
		}{
			{"text", "back", 4.5}, {"muted", "back", 4.5}, {"used", "free", 3}, {"used", "back", 3}, {"used", "gone", 3},
			{"line", "back", 3}, {"goneline", "back", 3}, {"out", "back", 3},
		} {
			a, b := color[tc.a], color[tc.b]
			if got := (max(a, b) + .05) / (min(a, b) + .05); got < tc.want {
				t.Errorf("theme %d: contrast of %s and %s is %.2f, less than %.1f", i, tc.a, tc.b, got, tc.want)
			}
		}
	}
}

// luminance is the relative luminance of a colour, as WCAG defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	hex = hex[1:]
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	sum := 0.0
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
