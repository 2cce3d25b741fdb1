// Package installation installs gpu-binpacker on a control plane of package
// controlplane, as a user would: the rendered manifests are applied as they
// are, strictly, cert-manager issues the certificate, and the real binary runs
// with the shipped configuration, ServiceAccount and RBAC.
//
//	cp := controlplane.StartForTest(t, controlplane.Options{CertManager: true, Kwok: true})
//	installed := installation.InstallForTest(t, cp, installation.Options{})
//	err := installed.WaitSteering(t.Context()) // needs a node with GPUs
//
// There is no kubelet and no kube-proxy, so four things differ from a cluster:
//
//   - The Deployment has no replicas. They run as processes of this machine
//     instead, with the arguments and environment of the Deployment's container
//     and with flags for ports and folders. Its pods would run on the fake
//     nodes and take CPU there, which the scheduler's scores would show. Each
//     process has a Pod without a node, by which the replicas know each other,
//     and whose condition Ready is that of the process.
//   - The webhook's Service is an ExternalName for localhost, and the port in
//     the webhook configuration is that of a process here. The API server still
//     verifies the certificate for the name of the Service.
//   - A small TCP proxy spreads the connections over the replicas.
//   - A mirror of the certificate's Secret takes the place of its volume.
//
// Files in reading order:
//
//   - installation.go: START HERE, Install and what it returns.
//   - manifests.go: rendering, adapting and applying.
//   - replica.go: one process of the webhook.
//   - readiness.go, secretmirror.go: the kubelet's part.
//   - proxy.go, rotation.go: kube-proxy's part, and why each replica serves.
//   - steering.go, metrics.go, testing.go: what tests use.
package installation
