package scheduler

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Formulas are what differs between versions of Kubernetes in what a pod asks for and
// in the points that the scheduler's plugins give. Sources: k8s.io/kubernetes
// pkg/scheduler/framework/plugins and pkg/api/pod of 1.33 to 1.37; package
// test/agreement/binary compares the model with the scheduler of each version.
type Formulas struct {
	// podLevelResources: spec.resources of a pod counts, since 1.34. Before, the API
	// server drops it, but only after admission, so that we see it.
	podLevelResources bool
	// balanceGain: NodeResourcesBalancedAllocation compares a node's balance before
	// and after placement, since 1.36 (kubernetes PR 135573). Only the balance after
	// placement counted before.
	balanceGain bool
	// imageVolumes: ImageLocality counts images that are mounted as volumes, since
	// 1.36. volumesInDivisor: their number is part of what it divides by, since 1.37.
	imageVolumes, volumesInDivisor bool
}

func formulasOf(v config.MinorVersion) Formulas {
	return Formulas{
		podLevelResources: v.AtLeast(config.MinorVersion{Major: 1, Minor: 34}),
		balanceGain:       v.AtLeast(config.MinorVersion{Major: 1, Minor: 36}),
		imageVolumes:      v.AtLeast(config.MinorVersion{Major: 1, Minor: 36}),
		volumesInDivisor:  v.AtLeast(config.MinorVersion{Major: 1, Minor: 37}),
	}
}

// SameFormulas tells whether two versions give every node the same points for a pod,
// as far as the model goes.
func SameFormulas(a, b config.MinorVersion) bool { return formulasOf(a) == formulasOf(b) }

// VersionSource is where the version of the scheduler is known from.
type VersionSource string

// Values of VersionSource.
const (
	// VersionConfigured: scheduler.kubernetesVersion is set.
	VersionConfigured VersionSource = "configured"
	// VersionServer: the API server tells it.
	VersionServer VersionSource = "server"
	// VersionAssumed: nobody told it, so that it is the newest one.
	VersionAssumed VersionSource = "assumed"
)

// versionHeld is how long a version counts after an API server was last seen to be
// of it. kube-scheduler may run one minor version behind the API server, and while a
// control plane is upgraded several API servers answer in turn: kubeadm and managed
// services take some minutes from one component to the next.
const versionHeld = 10 * time.Minute

// Version is by which versions of kube-scheduler decisions go: the
// configured one, else every one that an API server was seen to be of in the last
// ten minutes, else the newest. With several of them the weights are right for each.
// It is safe for parallel use.
type Version struct {
	configured bool
	now        func() time.Time

	mu sync.Mutex // guards all below
	// seen is when an API server was last of a version, of those that still count.
	seen map[config.MinorVersion]time.Time
	// held are the versions that count, newest first, never none.
	held []config.MinorVersion
	// formulas are theirs, each once, those of the newest version first. The list is
	// replaced, never changed, so that readers may keep it.
	formulas []Formulas
}

// NewVersion returns the configured version, or the newest until one is seen.
func NewVersion(cfg config.Scheduler, now func() time.Time) *Version {
	v := &Version{now: now, seen: map[config.MinorVersion]time.Time{}}
	// Validate has refused what does not parse.
	configured, err := config.ParseMinorVersion(cfg.KubernetesVersion)
	v.configured = err == nil
	if !v.configured {
		configured = config.NewestVersion
	}
	v.hold(configured)
	return v
}

// See tells that an API server has this version now, and returns whether that changes
// the versions that count. With a configured version nothing changes.
func (v *Version) See(server config.MinorVersion) (changed bool) {
	if v.configured {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	known := len(v.seen) > 0
	now := v.now()
	v.seen[server] = now
	maps.DeleteFunc(v.seen, func(_ config.MinorVersion, at time.Time) bool { return now.Sub(at) > versionHeld })
	held := slices.SortedFunc(maps.Keys(v.seen), func(a, b config.MinorVersion) int {
		if a.AtLeast(b) {
			return -1
		}
		return 1
	})
	if known && slices.Equal(held, v.held) {
		return false
	}
	v.hold(held...)
	return true
}

// hold makes these versions count.
func (v *Version) hold(versions ...config.MinorVersion) {
	var all []Formulas
	for _, version := range versions {
		if f := formulasOf(version); !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	v.held, v.formulas = versions, all
}

// Held returns the versions that count, newest first.
func (v *Version) Held() []config.MinorVersion {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.held)
}

// Source returns where the versions are known from.
func (v *Version) Source() VersionSource {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.configured:
		return VersionConfigured
	case len(v.seen) > 0:
		return VersionServer
	}
	return VersionAssumed
}

// Current returns the formulas that count, those of the newest version first.
func (v *Version) Current() []Formulas {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.formulas
}

// Stored returns a pod as the API server of the newest version that counts keeps it.
func (v *Version) Stored(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.Resources == nil || v.Current()[0].podLevelResources {
		return pod
	}
	kept := *pod
	kept.Spec.Resources = nil
	return &kept
}
