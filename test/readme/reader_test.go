package readme

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

const (
	// commandTimeout is for one command; make build compiles everything.
	commandTimeout = 10 * time.Minute

	gpusPerNode    = 8
	team           = "team-a"
	readmeRegistry = "registry.example.com"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

// reader is somebody with a cluster who follows the README.
type reader struct {
	*controlplane.ControlPlane
	// root is the repository, dir a copy of it, where the commands run.
	root, dir string
	// environment of the commands.
	environment []string
	// registry is the address of a registry that takes the place of the
	// README's.
	registry string

	// installed is what runs after the installation.
	installed *installation.Installation
	// pod and node are of the sample: one of its pods, and where all of them are.
	pod, node string
	// helmInstall is the command that the README shows as another way to install.
	helmInstall string
}

// newReader starts a cluster with GPU nodes that are tainted, as is usual, other
// nodes, and GPU pods that nobody has packed. Its reader has kubectl and Helm.
func newReader(t *testing.T) *reader {
	t.Helper()
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{root: root, dir: filepath.Join(root, "bin", "readme")}
	r.copyCheckout(t)
	r.buildPrograms(t)
	r.ControlPlane = controlplane.StartForTest(t, controlplane.Options{ControllerManager: true, Kwok: true, CertManager: true})
	r.fillCluster(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	r.registry = strings.TrimPrefix(server.URL, "http://")
	r.environment = r.newEnvironment(t)
	return r
}

// copyCheckout copies the repository, since commands write into it. The copy is
// always in the same place, so that the go command compiles it once only.
func (r *reader) copyCheckout(t *testing.T) {
	t.Helper()
	remove := func() {
		if err := os.RemoveAll(r.dir); err != nil {
			t.Error(err)
		}
	}
	remove()
	t.Cleanup(remove)
	entries, err := os.ReadDir(r.root)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		from, to := filepath.Join(r.root, entry.Name()), filepath.Join(r.dir, entry.Name())
		switch {
		case entry.Name() == "bin" || entry.Name() == ".git":
		case entry.IsDir():
			err = os.CopyFS(to, os.DirFS(from))
		default:
			var content []byte
			if content, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, content, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// readersPrograms are what the reader has: name -> package.
var readersPrograms = map[string]string{
	"helm":    "helm.sh/helm/v4/cmd/helm",
	"kubectl": "k8s.io/kubernetes/cmd/kubectl",
}

// buildPrograms builds them in the versions of test/go.mod.
func (r *reader) buildPrograms(t *testing.T) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(readersPrograms)) {
		program := programs.Program{
			Name: name, Package: readersPrograms[name], Dir: filepath.Join(r.root, "test"), Output: filepath.Join(r.root, "bin", name),
		}
		if err := program.Build(t.Context(), t.Output()); err != nil {
			t.Fatal(err)
		}
	}
}

// newEnvironment has the programs first on its PATH and the cluster in KUBECONFIG;
// what they store goes to folders of the test.
func (r *reader) newEnvironment(t *testing.T) []string {
	t.Helper()
	path, state := t.TempDir(), t.TempDir()
	links := map[string]string{"kubectl-gpu_binpacker": filepath.Join(r.dir, "bin", "gpu-binpacker")}
	for name := range readersPrograms {
		links[name] = filepath.Join(r.root, "bin", name)
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	// What make gave to this test is not for the reader's make.
	environment := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return strings.HasPrefix(name, "MAKE") || strings.HasPrefix(name, "HELM_") || slices.Contains([]string{"MFLAGS", "IMAGE", "TESTFLAGS"}, name)
	})
	return append(environment,
		"KUBECONFIG="+r.Kubeconfig(),
		"PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECACHEDIR="+filepath.Join(state, "kube"),
		"HELM_CACHE_HOME="+filepath.Join(state, "helm", "cache"),
		"HELM_CONFIG_HOME="+filepath.Join(state, "helm", "config"),
		"HELM_DATA_HOME="+filepath.Join(state, "helm", "data"),
		"DOCKER_CONFIG="+filepath.Join(state, "docker"),
	)
}

// fillCluster creates four nodes with GPUs, two without, and two pods that would
// fit on one node and are on two.
func (r *reader) fillCluster(t *testing.T) {
	t.Helper()
	taint := corev1.Taint{Key: string(gpu), Value: "present", Effect: corev1.TaintEffectNoSchedule}
	nodes := controlplane.Nodes("gpu", 4, map[string]string{"cpu": "96", "memory": "1152Gi", string(gpu): fmt.Sprint(gpusPerNode)},
		controlplane.WithTaints(taint))
	nodes = append(nodes, controlplane.Nodes("cpu", 2, map[string]string{"cpu": "16", "memory": "64Gi"})...)
	if err := r.CreateNodes(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
	if err := r.CreateNamespace(t.Context(), team, nil); err != nil {
		t.Fatal(err)
	}
	limits := corev1.ResourceList{gpu: resource.MustParse(fmt.Sprint(gpusPerNode / 2))}
	for i := range 2 {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: fmt.Sprintf("train-%d", i)},
			Spec: corev1.PodSpec{
				NodeName:    nodes[i].Name,
				Tolerations: []corev1.Toleration{{Key: taint.Key, Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{
					Name: "main", Image: "example.invalid/train", Resources: corev1.ResourceRequirements{Limits: limits},
				}},
			},
		}
		if err := r.Client().Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
	}
}

// sh runs a command in the copy of the repository and returns what it prints. The
// test ends when it fails.
func (r *reader) sh(t *testing.T, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := r.command(ctx, text)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	t.Logf("$ %s\n%s", text, out.String())
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out.String()
}

// command prepares a command. The end of ctx interrupts it and what it started.
func (r *reader) command(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-c", text)
	cmd.Dir, cmd.Env = r.dir, r.environment
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}
