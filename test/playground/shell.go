package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// shell is what a shell needs to use the cluster.
type shell struct{ kubeconfig, path string }

// newShell builds kubectl, and makes a folder for PATH with it and gpu-binpacker, also
// as a plugin of kubectl.
func newShell(ctx context.Context, cp *controlplane.ControlPlane, out io.Writer) (shell, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return shell{}, err
	}
	kubectl := programs.Program{
		Name: "kubectl", Package: "k8s.io/kubernetes/cmd/kubectl", Dir: filepath.Join(root, "test"), Output: filepath.Join(root, "bin", "kubectl"),
	}
	if err := kubectl.Build(ctx, out); err != nil {
		return shell{}, err
	}
	s := shell{kubeconfig: cp.Kubeconfig(), path: filepath.Join(cp.Dir(), "path")}
	if err := os.Mkdir(s.path, 0o755); err != nil {
		return shell{}, err
	}
	product := filepath.Join(root, "bin", "gpu-binpacker")
	for name, target := range map[string]string{"kubectl": kubectl.Output, "gpu-binpacker": product, "kubectl-gpu_binpacker": product} {
		if err := os.Symlink(target, filepath.Join(s.path, name)); err != nil {
			return shell{}, err
		}
	}
	return s, nil
}

// show prints what there is and what to try.
func (o options) show(out io.Writer, s shell) {
	fmt.Fprintf(out, `
A cluster is running, with %d nodes of %d GPUs and %d replicas of gpu-binpacker.
Ctrl-C ends it. In another terminal, in this folder:

  export KUBECONFIG=%s PATH=%s:$PATH

  kubectl apply -f config/samples/namespace.yaml -f config/samples/job.yaml
  kubectl -n gpu-binpacker-sample get pods -o wide
  gpu-binpacker nodes
  gpu-binpacker explain -n gpu-binpacker-sample -f config/samples/job.yaml
  gpu-binpacker report

All of "See it work" in README.md works here.
`, o.nodes, o.gpus, o.replicas, s.kubeconfig, s.path)
}
