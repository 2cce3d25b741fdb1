// Package controlplane runs a real Kubernetes control plane on this
// machine, without containers: etcd, kube-apiserver and kube-scheduler, and on
// request kube-controller-manager, kwok (nodes and pods without machines) and
// cert-manager.
//
// A test writes
//
//	cp := controlplane.StartForTest(t, controlplane.Options{Kwok: true})
//	err := cp.CreateNodes(t.Context(), controlplane.Nodes("gpu", 4, map[string]string{
//		"cpu": "96", "memory": "1152Gi", "nvidia.com/gpu": "8",
//	})...)
//
// and then uses cp.Client() like any other client. Everything listens on
// loopback only, on ports of its own, and lives in a temporary directory, so
// any number of control planes can run side by side.
//
// The programs are those of package programs. A test that needs two Kubernetes versions
// gets the first by Options.Binaries; Component.Replace and Restart put a program of the
// second in its place.
//
// Files in reading order:
//
//   - options.go: what a caller can choose.
//   - controlplane.go: START HERE, Start and Stop, the order of things.
//   - component.go, process.go, process_linux.go, process_other.go: one child
//     process, from start to the last line of its log.
//   - etcd.go, apiserver.go, scheduler.go, controllermanager.go, kwok.go,
//     certmanager.go: the command line and the readiness of each component.
//   - kwok.yaml: what fake nodes and their pods do.
//   - ports.go, certificates.go, kubeconfig.go: what the components share.
//   - clients.go, namespaces.go, nodes.go, metrics.go, version.go, testing.go: what
//     tests use.
package controlplane
