package controlplane

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"sigs.k8s.io/yaml"
)

const (
	// Requests per second of the scheduler and the controllers. Their
	// defaults (50 and 20) would be the bottleneck of every measurement.
	clientQPS   = 1000
	clientBurst = 2000
)

// schedulerUser is who schedulers are to the API server.
const schedulerUser = "system:kube-scheduler"

// scheduler describes a scheduler.
func (cp *ControlPlane) scheduler(scheduler Scheduler) (*Component, error) {
	port, err := cp.ports.reserve()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := cp.kubeconfigFor(schedulerUser)
	if err != nil {
		return nil, err
	}
	if err := cp.ConfigureScheduler(scheduler.Name, scheduler.Config); err != nil {
		return nil, err
	}
	file := cp.schedulerConfigFile(scheduler.Name)
	url := "https://" + loopback(port)
	cp.addresses[scheduler.Name] = url
	ready := func(ctx context.Context) error { return cp.get(ctx, url+"/readyz") }
	args := append([]string{
		"--config=" + file,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + cp.path(serverCertificate),
		"--tls-private-key-file=" + cp.path(serverKey),
		"--v=" + cp.verbosity(scheduler.Name),
	}, scheduler.Args...)
	return cp.component(scheduler.Name, scheduler.Binary, ready, args...), nil
}

// ConfigureScheduler writes the configuration that a scheduler reads at its next
// start. config is what Scheduler.Config is.
func (cp *ControlPlane) ConfigureScheduler(name string, config []byte) error {
	kubeconfig, err := cp.kubeconfigFor(schedulerUser)
	if err != nil {
		return err
	}
	completed, err := schedulerConfig(config, kubeconfig)
	if err != nil {
		return fmt.Errorf("configuring %s: %w", name, err)
	}
	if err := os.WriteFile(cp.schedulerConfigFile(name), completed, privateFileMode); err != nil {
		return fmt.Errorf("configuring %s: %w", name, err)
	}
	return nil
}

// schedulerConfigFile is the configuration file of a scheduler.
func (cp *ControlPlane) schedulerConfigFile(name string) string { return cp.path(name + ".yaml") }

// schedulerConfig completes a KubeSchedulerConfiguration with the connection to
// the API server. Everything else stays as the caller wrote it.
func schedulerConfig(user []byte, kubeconfig string) ([]byte, error) {
	config := map[string]any{}
	if err := yaml.UnmarshalStrict(user, &config); err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	if len(config) == 0 {
		config["apiVersion"] = "kubescheduler.config.k8s.io/v1"
		config["kind"] = "KubeSchedulerConfiguration"
	}
	config["clientConnection"] = map[string]any{"kubeconfig": kubeconfig, "qps": clientQPS, "burst": clientBurst}
	// There is no other candidate, and the lease would only delay a restart.
	config["leaderElection"] = map[string]any{"leaderElect": false}
	return yaml.Marshal(config)
}
