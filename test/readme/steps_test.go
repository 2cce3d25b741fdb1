package readme

import (
	"runtime"
	"strings"
	"testing"
)

// step says what is special about a command. What is not in steps is run as shown
// and must succeed.
type step struct {
	// why the command is not run as shown; empty when it is.
	why string
	// instead runs in its place and returns what it printed.
	instead func(t *testing.T, r *reader, text string) (out string)
	// before and after run around it. Here before does what happens in a cluster
	// without a command, or takes time; after checks what the command did.
	before func(t *testing.T, r *reader)
	after  func(t *testing.T, r *reader, out string)
}

// steps are by the text of the command.
var steps = map[string]step{
	"make example":    {after: exampleShown},
	"make playground": {why: "it never ends by itself; TestPlayground runs it", instead: printOnly},
	"make playground PLAYGROUND='-nodes 8 -gpus 4 -replicas 1'": {why: "it never ends by itself; TestPlayground runs it", instead: printOnly},
	"make test-burst":              {why: "takes 20 minutes", instead: printOnly},
	"make test-platforms":          {why: "compiles for each platform for minutes", instead: printOnly},
	"make demo":                    {why: "takes minutes; its scenarios are tested in test/e2e", instead: printOnly},
	"make test":                    {why: "this test is a part of it", instead: printOnly},
	"make test-unit":               {why: "CI runs it as part of make test", instead: printOnly},
	"make test-browser":            {why: "needs a browser; CI runs it", instead: printOnly},
	"make lint":                    {why: "takes minutes; CI runs it", instead: printOnly},
	"make verify":                  {why: "takes minutes; CI runs it", instead: printOnly},
	"make bench-packing":           {why: "takes minutes", instead: printOnly},
	"make bench-packing MODE=full": {why: "takes hours", instead: printOnly},
	"make bench-admission ADMISSIONFLAGS='-shapes homogeneous -nodes 5000'": {why: "takes minutes", instead: printOnly},
	"make bench-compare":                {why: "takes ten minutes and more", instead: printOnly},
	"make bench-scale":                  {why: "takes ten minutes", instead: printOnly},
	"make bench-e2e E2EFLAGS='-runs 3'": {why: "takes minutes", instead: printOnly},
	"make test-faults":                  {why: "takes ten minutes; make test has the short form", instead: printOnly},
	"make test-attack":                  {why: "takes ten minutes; make test has the short form", instead: printOnly},
	"make test-profiles":                {why: "takes five minutes", instead: printOnly},
	"make test-versions":                {why: "builds other Kubernetes versions", instead: printOnly},
	"make test-upgrade":                 {why: "builds other Kubernetes versions", instead: printOnly},
	"make soak":                         {why: "takes half an hour", instead: printOnly},

	"bin/gpu-binpacker report --html report.html": {after: reported},
	"make image": {
		why:     "compiling for a second platform takes minutes; test/image checks images of two",
		instead: adding("IMAGE_PLATFORMS=linux/" + runtime.GOARCH),
	},
	"make push IMAGE=registry.example.com/gpu-binpacker:v0.1.0": {
		why:     "a registry on this machine takes the place of the one that stands for the reader's",
		instead: pushHere,
	},
	"kubectl apply -f bin/install.yaml": {after: startReplicas},
	"helm install gpu-binpacker config/helm/gpu-binpacker -n gpu-binpacker-system --create-namespace" +
		" --set image.repository=registry.example.com/gpu-binpacker --set image.tag=v0.1.0": {
		why:     "the other way to install is run when the first installation is gone, with helm uninstall",
		instead: rememberHelmInstall,
	},
	"bin/gpu-binpacker check --wait 2m": {after: steered},

	"kubectl apply -f config/samples/namespace.yaml -f config/samples/job.yaml": {before: endEarlierPods, after: packed},
	"kubectl -n gpu-binpacker-sample get pods -o wide":                          {after: listed},
	"bin/gpu-binpacker explain -n gpu-binpacker-sample POD": {
		why: "POD stands for one of the pods",
		instead: func(t *testing.T, r *reader, text string) string {
			return r.sh(t, strings.Replace(text, "POD", r.pod, 1))
		},
		after: explainedPod,
	},
	"bin/gpu-binpacker explain -n gpu-binpacker-sample -f config/samples/job.yaml": {after: explainedFile},
	"bin/gpu-binpacker nodes --watch": {
		why:     "it never ends by itself; it is interrupted when it shows the full node",
		instead: interruptWatch,
	},
	"kubectl gpu-binpacker": {
		why:     "it stands for all commands; one of them is run",
		instead: adding("nodes"),
		after:   pluginShows,
	},

	"kubectl delete -f bin/install.yaml": {after: uninstalled},
	"helm uninstall gpu-binpacker -n gpu-binpacker-system": {
		why:     "helm install comes first, see there",
		instead: installAndUninstall,
		after:   uninstalled,
	},
	"kubectl label namespace team-a gpu-binpacker.io/enabled-": {after: optedOut},
}

// runAsShown is for commands that are not in steps.
func runAsShown(t *testing.T, r *reader, text string) string {
	t.Helper()
	return r.sh(t, text)
}

// printOnly lets make print what it would do: at least there is such a target.
func printOnly(t *testing.T, r *reader, text string) string {
	t.Helper()
	return r.sh(t, strings.Replace(text, "make", "make -n", 1))
}

// adding returns a function that adds words to the command.
func adding(words string) func(*testing.T, *reader, string) string {
	return func(t *testing.T, r *reader, text string) string {
		t.Helper()
		return r.sh(t, text+" "+words)
	}
}

// pushHere pushes to the test's registry. make push itself compares digests.
func pushHere(t *testing.T, r *reader, text string) string {
	t.Helper()
	return r.sh(t, strings.Replace(text, readmeRegistry, r.registry, 1))
}

func rememberHelmInstall(_ *testing.T, r *reader, text string) string {
	r.helmInstall = text
	return ""
}

// installAndUninstall installs as the README shows before it uninstalls.
func installAndUninstall(t *testing.T, r *reader, text string) string {
	t.Helper()
	installed := r.sh(t, r.helmInstall)
	r.waitDeployment(t)
	if !r.registered(t) {
		t.Errorf("%s has not registered the webhook", r.helmInstall)
	}
	return installed + r.sh(t, text)
}
