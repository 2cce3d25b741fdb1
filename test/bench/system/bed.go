package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/installation"
	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

const (
	// seenTimeout is how long the scheduler may take to see all nodes. Its count
	// of them is updated every second.
	seenTimeout = 2 * time.Minute
	// seenInterval is the pause between two looks.
	seenInterval = 50 * time.Millisecond
)

// Options say how the systems run.
type Options struct {
	// Binary is the product. Default: built from the repository.
	Binary string
	// ProductArgs are appended to its command line.
	ProductArgs []string
	// Plugin builds and starts the scheduler with the origin's plugin, which Use
	// needs for the system Plugin. That scheduler has the version of test/go.mod
	// whatever the version of the control plane is.
	Plugin bool
	// Patient gives a call of the webhook ten seconds instead of one, and a
	// decision one second instead of half of one: on a machine that is busy with
	// other things, calls that miss their timeout would hide how pods are packed.
	Patient bool
	// SchedulerVerbosity is kube-scheduler's -v. From 10 on it logs the scores.
	SchedulerVerbosity int
	// KeepDir keeps the logs.
	KeepDir bool
	// Pods receives the pods at the end of each run, one JSON object per line, to
	// find out why they are where they are. Nil means nothing.
	Pods io.Writer
	// Log receives one line per step.
	Log io.Writer
}

// Bed is a control plane on which one system at a time places pods. It has no
// kubelet and no kwok: being bound is all that counts here.
type Bed struct {
	*controlplane.ControlPlane
	options   Options
	clientset *kubernetes.Clientset
	current   System
	installed *installation.Installation
}

// Start builds what is missing and starts the control plane, without any system.
func Start(ctx context.Context, options Options) (*Bed, error) {
	schedulers := []controlplane.Scheduler{stockScheduler()}
	if options.Plugin {
		scheduler, err := pluginScheduler(ctx, options.Log)
		if err != nil {
			return nil, err
		}
		schedulers = append(schedulers, scheduler)
	}
	cp, err := controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true,
		CertManager:       true,
		Schedulers:        schedulers,
		// Cleaning up between two runs would take longer than the runs.
		ExtraArgs: map[string][]string{controlplane.APIServer: {"--delete-collection-workers=16"}},
		Verbosity: map[string]int{controlplane.KubeScheduler: options.SchedulerVerbosity},
		KeepDir:   options.KeepDir,
		Log:       options.Log,
	})
	if err != nil {
		return nil, err
	}
	b := &Bed{ControlPlane: cp, options: options}
	clientConfig := cp.RESTConfig()
	clientConfig.ContentType = runtime.ContentTypeProtobuf
	clientConfig.QPS = -1
	if b.clientset, err = newClientset(clientConfig); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return b, nil
}

func newClientset(c *rest.Config) (*kubernetes.Clientset, error) {
	clientset, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("building the clientset: %w", err)
	}
	return clientset, nil
}

// Dump writes a pod to Options.Pods.
func (b *Bed) Dump(pod *corev1.Pod) error {
	if b.options.Pods == nil {
		return nil
	}
	if err := json.NewEncoder(b.options.Pods).Encode(pod); err != nil {
		return fmt.Errorf("writing pods: %w", err)
	}
	return nil
}

// Clients returns an administrator's clientset without rate limit and timeout.
func (b *Bed) Clients() kubernetes.Interface { return b.clientset }

// Use makes s the system in charge: only its scheduler runs, and the product only
// if it is ours.
func (b *Bed) Use(ctx context.Context, s System) error {
	if b.current == s {
		return nil
	}
	if err := b.stopInstalled(); err != nil {
		return err
	}
	b.current = s
	wanted, other := controlplane.KubeScheduler, originScheduler
	if s.Name == Plugin {
		wanted, other = other, wanted
	}
	if b.options.Plugin {
		if err := b.Component(other).Kill(); err != nil {
			return err
		}
	}
	if !b.Component(wanted).Running() {
		if err := b.Component(wanted).Start(ctx); err != nil {
			return err
		}
	}
	if s.Replicas == 0 {
		return nil
	}
	return b.install(ctx, s.Replicas)
}

// install installs and starts the product.
func (b *Bed) install(ctx context.Context, replicas int) error {
	options := installation.Options{
		Replicas: replicas, Binary: b.options.Binary, Args: b.options.ProductArgs, Log: b.options.Log,
	}
	if b.options.Patient {
		configuration, err := patientConfiguration()
		if err != nil {
			return err
		}
		options.Kustomization, options.Configuration = patientKustomization, configuration
	}
	var err error
	b.installed, err = installation.Install(ctx, b.ControlPlane, options)
	return err
}

func (b *Bed) stopInstalled() error {
	if b.installed == nil {
		return nil
	}
	err := b.installed.Stop()
	b.installed = nil
	return err
}

// Stop ends everything.
func (b *Bed) Stop() error { return errors.Join(b.stopInstalled(), b.ControlPlane.Stop()) }

// SchedulerName is the spec.schedulerName of pods that the current system places.
func (b *Bed) SchedulerName() string { return b.current.schedulerName() }

// NamespaceLabels are the labels of a namespace for the current system.
func (b *Bed) NamespaceLabels() map[string]string {
	if b.current.Name == Ours {
		return map[string]string{config.LabelEnabled: "true"}
	}
	return nil
}

// WaitSeen waits until the scheduler and every replica of the webhook have seen
// that there are so many nodes and no pods.
func (b *Bed) WaitSeen(ctx context.Context, nodes int) error {
	scheduler := controlplane.KubeScheduler
	if b.current.Name == Plugin {
		scheduler = originScheduler
	}
	var seenNodes, seenPods int
	err := wait.PollUntilContextTimeout(ctx, seenInterval, seenTimeout, true, func(ctx context.Context) (bool, error) {
		metrics, err := b.Metrics(ctx, scheduler)
		if err != nil {
			return false, err
		}
		seenNodes = int(metrics.Sum("scheduler_cache_size", map[string]string{"type": "nodes"}))
		seenPods = int(metrics.Sum("scheduler_cache_size", map[string]string{"type": "pods"}))
		return seenNodes == nodes && seenPods == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to see %d nodes and no pods; it sees %d and %d: %w", scheduler, nodes, seenNodes, seenPods, err)
	}
	if b.installed == nil {
		return nil
	}
	cluster := &scenario.Cluster{ControlPlane: b.ControlPlane, Installed: b.installed}
	return cluster.WaitIndex(ctx)
}

// Counts are what the webhook and the API server count.
type Counts struct {
	// Served is how many requests each replica has answered.
	Served []int
	// Denied and FailedOpen are pods refused, and let pass, because of us.
	Denied, FailedOpen int
}

// Counts reads the counts, which only grow while the system is in charge.
func (b *Bed) Counts(ctx context.Context) (c Counts, err error) {
	if b.installed == nil {
		return Counts{}, nil
	}
	if c.Served, err = b.installed.Served(ctx); err != nil {
		return Counts{}, err
	}
	if c.Denied, err = b.installed.Rejections(ctx); err != nil {
		return Counts{}, err
	}
	c.FailedOpen, err = b.installed.FailOpens(ctx)
	return c, err
}

// Since returns what was counted since an earlier time.
func (c Counts) Since(before Counts) Counts {
	c.Served = slices.Clone(c.Served)
	for i := range c.Served {
		c.Served[i] -= before.Served[i]
	}
	c.Denied -= before.Denied
	c.FailedOpen -= before.FailedOpen
	return c
}
