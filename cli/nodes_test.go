package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

func TestNodesGolden(t *testing.T) {
	cluster := data("cluster.yaml")
	several := filepath.Join("testdata", "nodes", "several.yaml")
	for name, args := range map[string][]string{
		"packed":         {"--state", cluster},
		"ascii":          {"--state", cluster, "--ascii"},
		"by-name":        {"--state", cluster, "--sort", "name"},
		"by-free":        {"--state", cluster, "--sort", "free"},
		"by-used":        {"--state", cluster, "--sort", "used"},
		"json":           {"--state", cluster, "-o", "json"},
		"yaml":           {"--state", cluster, "-o", "yaml"},
		"several":        {"--state", several},
		"several-json":   {"--state", several, "-o", "json"},
		"none":           {"--state", filepath.Join("testdata", "nodes", "none.yaml")},
		"long-names":     {"--state", data("many.yaml")},
		"narrow-by-name": {"--state", data("many.yaml"), "--sort", "name", "--ascii"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LC_ALL", "C.UTF-8")
			out, err := execute(t, append([]string{"nodes"}, args...)...)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("nodes", name+".golden"), out)
			if !slices.Contains(args, "json") && name != "none" {
				within(t, out)
			}
		})
	}
}

func TestNodesErrors(t *testing.T) {
	cluster := data("cluster.yaml")
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"watch a file":      {[]string{"--watch", "--state", cluster}, []string{"--watch", "--state", "leave out"}},
		"sort":              {[]string{"--sort", "age"}, []string{"--sort", "age", "packed, name, used or free"}},
		"output":            {[]string{"-o", "wide"}, []string{"--output", "wide", "table, json or yaml"}},
		"argument":          {[]string{"gpu-1"}, []string{"gpu-1"}},
		"state and context": {[]string{"--state", cluster, "--context", "y"}, []string{"context", "state"}},
	} {
		t.Run(name, func(t *testing.T) { wantError(t, append([]string{"nodes"}, tc.args...), tc.want) })
	}
}

// pictures collects what a watch prints and tells when something came.
type pictures struct {
	mu   sync.Mutex // guards all
	text bytes.Buffer
	came chan struct{}
}

func (p *pictures) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.came <- struct{}{}:
	default:
	}
	return p.text.Write(data)
}

// waitFor waits until all that was printed satisfies a condition.
func (p *pictures) waitFor(t *testing.T, condition func(string) bool) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		p.mu.Lock()
		text := p.text.String()
		p.mu.Unlock()
		if condition(text) {
			return
		}
		select {
		case <-p.came:
		case <-timeout:
			t.Fatalf("this is all that came:\n%s", text)
		}
	}
}

// watchNodes runs nodes --watch against a fake cluster and returns how it ended.
func watchNodes(ctx context.Context, clients kubernetes.Interface, out io.Writer, args ...string) error {
	connect := func() (kubernetes.Interface, error) { return clients, nil }
	o := &nodesOptions{clients: connect, watchClients: connect, interval: time.Millisecond}
	cmd := o.command()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{"--watch", "--ascii"}, args...))
	return cmd.ExecuteContext(ctx)
}

// A watch shows what is there, then each change, and ends without an error.
func TestNodesWatch(t *testing.T) {
	clients := fakeCluster(t, loadState(t, data("cluster.yaml")))
	ctx, cancel := context.WithCancel(t.Context())
	out := &pictures{came: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() { done <- watchNodes(ctx, clients, out) }()
	tables := func(n int) func(string) bool {
		return func(text string) bool { return strings.Count(text, "IN FLIGHT") == n }
	}
	out.waitFor(t, tables(1))
	pod, err := clients.CoreV1().Pods("team-a").Get(ctx, "big-0", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// A heartbeat changes nothing that is shown, the end of a pod does.
	node, err := clients.CoreV1().Nodes().Get(ctx, "gpu-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Annotations = map[string]string{"heartbeat": "1"}
	if _, err := clients.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := clients.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	out.waitFor(t, tables(2))
	out.waitFor(t, func(text string) bool { return strings.Contains(text, "gpu-5  0     8     ........   0%") })
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the watch ended with %v", err)
	}
}

// Without permission a watch ends with the reason, also if only that to watch is missing.
func TestNodesWatchForbidden(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	for verb, clients := range map[string]*fake.Clientset{"list": fake.NewClientset(), "watch": fake.NewClientset()} {
		clients.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return verb == "list", nil, forbidden
		})
		clients.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
			return verb == "watch", nil, forbidden
		})
		err := watchNodes(t.Context(), clients, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "watching pods") || !strings.Contains(err.Error(), "list and watch") {
			t.Errorf("without %s the watch ended with %v", verb, err)
		}
	}
}

// In a terminal each picture takes the place of the last one.
func TestShow(t *testing.T) {
	for name, tc := range map[string]struct {
		view  nodesView
		first bool
		want  string
	}{
		"terminal":     {nodesView{screen: terminal.Screen{Terminal: true}, output: outputTable}, false, "\x1b[H\x1b[2Jx"},
		"file, first":  {nodesView{output: outputTable}, true, "x"},
		"file, second": {nodesView{output: outputTable}, false, "\nx"},
		"JSON":         {nodesView{screen: terminal.Screen{Terminal: true}, output: outputJSON}, false, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := show(&tc.view, &out, []byte("x"), tc.first); err != nil || out.String() != tc.want {
				t.Errorf("%q, %v, want %q", out.String(), err, tc.want)
			}
		})
	}
}

// A bar is full only when the node is, and empty only when nothing is used.
func TestBar(t *testing.T) {
	v := nodesView{}
	for used, want := range map[int64]string{
		0: "........   0%", 1: "#.......   6%", 8: "####....  50%", 15: "#######.  93%", 16: "######## 100%", 20: "######## 125%",
	} {
		if got := v.bar(nodes.ResourceUse{Allocated: used, Allocatable: 16}); got != want {
			t.Errorf("%d of 16: %q, want %q", used, got, want)
		}
	}
}

// Every reason why nothing is packed onto a node has a word.
func TestStateWords(t *testing.T) {
	source, err := os.ReadFile("../scoring/nodes/filter.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`(?m)^\t\w+ +Reason = "(.*)"$`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 10 {
		t.Fatalf("found only %d reasons in the source", len(reasons))
	}
	// These depend on the pod; the others are states of a node.
	ofPods := []nodes.Reason{nodes.NoResource, nodes.Affinity, nodes.Tainted, nodes.Insufficient}
	for _, r := range reasons {
		reason := nodes.Reason(r[1])
		if _, ok := stateWords[reason]; !ok && !slices.Contains(ofPods, reason) {
			t.Errorf("node reason %q has no word", reason)
		}
	}
}

// In a watch, each JSON report is one line.
func TestWatchedJSON(t *testing.T) {
	clients := fakeCluster(t, loadState(t, data("cluster.yaml")))
	ctx, cancel := context.WithCancel(t.Context())
	out := &pictures{came: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() { done <- watchNodes(ctx, clients, out, "-o", "json") }()
	out.waitFor(t, func(text string) bool { return strings.Count(text, "\n") == 1 })
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("4")},
	}}
	if _, err := clients.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	out.waitFor(t, func(text string) bool {
		return strings.Count(text, "\n") == 2 && strings.Contains(text, `"name":"new"`)
	})
	cancel()
	if err := <-done; err != nil {
		t.Errorf("the watch ended with %v", err)
	}
}
