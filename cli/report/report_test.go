package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

var update = flag.Bool("update", false, "write the golden files")

var taken = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

const (
	nvidia = "nvidia.com/gpu"
	slice  = "nvidia.com/mig-1g.5gb"
)

func node(name string, gpus corev1.ResourceList, labels map[string]string) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for key, value := range labels {
		n.Labels[key] = value
	}
	for name, q := range gpus {
		n.Status.Allocatable[name] = q
	}
	return n
}

func pod(name, on string, list corev1.ResourceList, change ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team", UID: types.UID(name), CreationTimestamp: metav1.NewTime(taken)},
		Spec: corev1.PodSpec{
			NodeName: on, SchedulerName: corev1.DefaultSchedulerName,
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(&p)
	}
	return p
}

func of(name corev1.ResourceName, count string) corev1.ResourceList {
	return corev1.ResourceList{name: resource.MustParse(count)}
}

func keptApart(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
	}}
}

// example is a cluster with some of everything.
func example() *Input {
	price := func(p string) map[string]string {
		return map[string]string{corev1.LabelInstanceTypeStable: "p5", "example.com/price": p}
	}
	cordoned := node("n4", of(nvidia, "8"), price("10"))
	cordoned.Spec.Unschedulable = true
	yes := true
	daemon := func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}
	}
	s := state.New(taken, nil,
		[]corev1.Node{
			node("n1", of(nvidia, "8"), price("10")), node("n2", of(nvidia, "8"), price("10")), node("n3", of(nvidia, "8"), price("10.5")),
			cordoned, node("mig-1", of(slice, "56"), nil), node("cpu", nil, nil),
		},
		[]corev1.Pod{
			pod("a", "n1", of(nvidia, "2")), pod("b", "n2", of(nvidia, "2")), pod("c", "n3", of(nvidia, "3")), pod("d", "n4", of(nvidia, "1"), keptApart),
			pod("m", "mig-1", of(slice, "5")), pod("exporter", "n2", nil, daemon), pod("web", "n3", of("cpu", "2")), pod("waits", "", of(nvidia, "8")),
		})
	s.ServerVersion = "v1.37.2"
	return &Input{State: s, Source: "the cluster"}
}

func newReport(t testing.TB, in *Input, prices *Prices) *Report {
	t.Helper()
	r, err := New(t.Context(), in, Options{Config: config.Default(), Version: "v0.0.0-test", Prices: prices})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// golden compares with a file, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with go test ./cli/report -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

func csvInput(t *testing.T, pods string) *Input {
	t.Helper()
	in, err := LoadCSV(filepath.Join("testdata", "nodes.csv"), filepath.Join("testdata", pods), config.Default().Resources, taken)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestGolden(t *testing.T) {
	prices, err := LoadPrices(filepath.Join("testdata", "prices.csv"))
	if err != nil {
		t.Fatal(err)
	}
	reports := map[string]*Report{
		"cluster":   newReport(t, example(), &Prices{Label: "example.com/price"}),
		"csv-times": newReport(t, csvInput(t, "pods.csv"), prices),
		"csv-bound": newReport(t, csvInput(t, "bound.csv"), nil),
	}
	for name, r := range reports {
		for form, write := range map[string]func(*Report, io.Writer) error{
			"txt": (*Report).WriteText, "md": (*Report).WriteMarkdown, "html": (*Report).WriteHTML, "json": (*Report).WriteJSON,
		} {
			t.Run(name+"."+form, func(t *testing.T) {
				var out bytes.Buffer
				if err := write(r, &out); err != nil {
					t.Fatal(err)
				}
				golden(t, name+"."+form, out.Bytes())
			})
		}
	}
}

// The example by hand. GPU pods are on all five nodes. d stays on n4 since it asks
// to be spread, and m is alone on its node. a, b and c, with 2, 2 and 3 GPUs, fit on
// one of n1 to n3; they may not join n4, which is cordoned. So 3 nodes are occupied,
// and 2 of n1 to n3 empty; on n3 is a web pod.
func TestFigures(t *testing.T) {
	r := newReport(t, example(), &Prices{All: 2})
	now, packed := r.Scenarios[0], r.Scenarios[1]
	if f := now.Figures; f.Nodes != 5 || f.Occupied != 5 || f.Empty != 0 || f.Out != 1 {
		t.Errorf("now %+v", f)
	}
	if f := packed.Figures; f.Occupied != 3 || f.Empty != 2 {
		t.Errorf("packed %+v", f)
	}
	// Now 6, 6 and 5 are free on n1 to n3; n4's are not to be had.
	if f := now.Figures.Resources[0]; f.Allocatable != 32 || f.Allocated != 8 || f.Stranded != 17 || f.LargestPod != 6 {
		t.Errorf("GPUs now %+v", f)
	}
	// Packed 1, 8 and 8, of which 1 on an occupied node.
	if f := packed.Figures.Resources[0]; f.Stranded != 1 || f.LargestPod != 8 {
		t.Errorf("GPUs packed %+v", f)
	}
	if now.PendingFit != 0 || packed.PendingFit != 1 {
		t.Errorf("the waiting pod fits: %d now, %d packed", now.PendingFit, packed.PendingFit)
	}
	// Two nodes at 2 an hour for 730 hours; on one of them may be the web pod.
	if packed.Money.Empty != 2920 || packed.Money.Removable != 1460*float64(packed.Figures.Removable) {
		t.Errorf("money %+v", packed.Money)
	}
	for _, k := range packed.Kept {
		if k.Pod == "team/d" && k.Reason != "Spread" {
			t.Errorf("kept %+v", k)
		}
	}
	if !strings.Contains(r.Summary(), "on 5 of 5 nodes") || !strings.Contains(r.Summary(), "simulation") {
		t.Errorf("summary %q", r.Summary())
	}
}

// No line is longer than a terminal is wide, but for names that are longer.
func TestTextFitsTheTerminal(t *testing.T) {
	for name, in := range map[string]*Input{"cluster": example(), "times": csvInput(t, "pods.csv"), "bound": csvInput(t, "bound.csv")} {
		var out bytes.Buffer
		if err := newReport(t, in, &Prices{All: 12345.678}).WriteText(&out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if len(strings.TrimRight(line, "\n")) > terminal.Columns {
				t.Errorf("%s: %d characters: %s", name, len(line), line)
			}
		}
	}
}

// Who reads the JSON form finds what was simulated and that it is a simulation.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := newReport(t, example(), nil).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got Report
	decoder := json.NewDecoder(&out)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != Kind || got.APIVersion != APIVersion || !got.Simulation || len(got.Scenarios) != 3 || len(got.Assumptions) < 4 {
		t.Errorf("%+v", got)
	}
}

func TestNoGPUNodes(t *testing.T) {
	in := &Input{State: state.New(taken, nil, []corev1.Node{node("cpu", nil, nil)}, nil), Source: "the cluster"}
	_, err := New(t.Context(), in, Options{Config: config.Default()})
	if err == nil || !strings.Contains(err.Error(), "resources.names") {
		t.Errorf("error %v", err)
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0": whole(0), "999": whole(999), "1,000": whole(1000), "1,234,567": whole(1234567), "-1,000": whole(-1000), "-100": whole(-100),
		"0.00": money(0), "0.99": money(.99), "1.00": money(.999), "1,234.50": money(1234.5), "1 node": plural(1, "node"), "2,000 nodes": plural(2000, "node"),
	} {
		if got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
