package controlplane

import (
	"io"
	"slices"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// Names of the components, as ControlPlane.Component and the maps of Options
// know them.
const (
	Etcd              = programs.Etcd
	APIServer         = programs.APIServer
	ControllerManager = programs.ControllerManager
	KubeScheduler     = programs.KubeScheduler
	Kwok              = programs.Kwok
	CertManager       = programs.CertManager
)

// Options choose what runs. The zero value is etcd, kube-apiserver and
// kube-scheduler with its default profile.
type Options struct {
	// ControllerManager runs kube-controller-manager: ReplicaSets and Jobs
	// make pods, namespaces can be deleted, node conditions become taints.
	ControllerManager bool

	// Kwok runs kwok: pods that are bound to a fake node become Running,
	// end when the annotation RunsForAnnotation says so, and disappear when
	// deleted. Without it a bound pod stays Pending, and a deleted one must
	// be deleted with a grace period of zero.
	Kwok bool

	// CertManager installs the CRDs of cert-manager and runs its controllers
	// and cainjector.
	CertManager bool

	// Schedulers are the schedulers to run. Nil means one kube-scheduler
	// with the default profile; an empty, non-nil slice means none.
	Schedulers []Scheduler

	// Binaries are the programs to run. The zero value means programs.Build.
	Binaries programs.Binaries

	// Verbosity is klog's -v, component name -> level. Default 0 for all.
	Verbosity map[string]int

	// ExtraArgs are appended to the command line, component name -> flags.
	ExtraArgs map[string][]string

	// KeepDir keeps the directory with logs and data after Stop. It is kept
	// in any case when Start fails.
	KeepDir bool

	// Log receives one line per step of building, starting and stopping.
	// Nil means no output.
	Log io.Writer
}

// Scheduler describes one scheduler process.
type Scheduler struct {
	// Name is the name of the component. Default KubeScheduler.
	Name string

	// Binary is a program that understands kube-scheduler's flags. Default:
	// the kube-scheduler of Options.Binaries.
	Binary string

	// Config is a KubeSchedulerConfiguration in YAML. The test bed fills in
	// clientConnection and switches leader election off. Empty means the
	// default profile.
	Config []byte

	// Args are appended to the command line.
	Args []string
}

// setDefaults fills the fields that have a default. It runs once, in Start.
func (o *Options) setDefaults() {
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Schedulers == nil {
		o.Schedulers = []Scheduler{{}}
	}
	o.Schedulers = slices.Clone(o.Schedulers)
	for i := range o.Schedulers {
		scheduler := &o.Schedulers[i]
		if scheduler.Name == "" {
			scheduler.Name = KubeScheduler
		}
		if scheduler.Binary == "" {
			scheduler.Binary = o.Binaries.Scheduler
		}
	}
}
