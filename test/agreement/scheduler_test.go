package agreement

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// realScheduler is kube-scheduler as its own main builds it, with the plugins of
// the default profile; only its loop does not run. Tests fill its cache and ask
// its filters and scores.
type realScheduler struct {
	scheduler *scheduler.Scheduler
	framework framework.Framework
	snapshot  *cache.Snapshot
	// informers hold what the scheduler's plugins look up; they do not run.
	informers informers.SharedInformerFactory
	// weights of the profile's score plugins, plugin -> weight.
	weights map[string]int64
	nodes   []*corev1.Node
	pods    []*corev1.Pod
}

// newRealScheduler builds a scheduler; change, if not nil, changes its profile.
func newRealScheduler(t testing.TB, change func(*schedulerconfig.KubeSchedulerProfile)) *realScheduler {
	t.Helper()
	klog.SetLogger(klog.Logger{})
	cfg, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	profile := &cfg.Profiles[0]
	if change != nil {
		change(profile)
	}
	client := fake.NewClientset()
	recorders := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	factory := scheduler.NewInformerFactory(client, 0, nil)
	s, err := scheduler.New(t.Context(), client, factory, nil, recorders, scheduler.WithProfiles(*profile))
	if err != nil {
		t.Fatal(err)
	}
	r := &realScheduler{scheduler: s, informers: factory, weights: map[string]int64{}}
	for _, f := range s.Profiles {
		r.framework = f
	}
	snapshot, ok := r.framework.SnapshotSharedLister().(*cache.Snapshot)
	if !ok {
		t.Fatalf("the scheduler's snapshot is a %T", r.framework.SnapshotSharedLister())
	}
	r.snapshot = snapshot
	for _, p := range r.framework.ListPlugins().Score.Enabled {
		r.weights[p.Name] = int64(p.Weight)
	}
	return r
}

// mostAllocated makes NodeResourcesFit pack the resources, with their weights.
func mostAllocated(resources ...schedulerconfig.ResourceSpec) func(*schedulerconfig.KubeSchedulerProfile) {
	return scoringStrategy(schedulerconfig.ScoringStrategy{Type: schedulerconfig.MostAllocated, Resources: resources})
}

// scoringStrategy gives NodeResourcesFit a strategy.
func scoringStrategy(strategy schedulerconfig.ScoringStrategy) func(*schedulerconfig.KubeSchedulerProfile) {
	return func(p *schedulerconfig.KubeSchedulerProfile) {
		for i := range p.PluginConfig {
			if args, ok := p.PluginConfig[i].Args.(*schedulerconfig.NodeResourcesFitArgs); ok {
				args.ScoringStrategy = &strategy
			}
		}
	}
}

// load replaces what is in the scheduler's cache. Pods that are over are left
// out, as the scheduler's informer does.
func (r *realScheduler) load(t testing.TB, nodes []*corev1.Node, pods []*corev1.Pod) {
	t.Helper()
	for _, p := range slices.Clone(r.pods) {
		r.removePod(t, p)
	}
	for _, n := range slices.Clone(r.nodes) {
		r.removeNode(t, n)
	}
	for _, n := range nodes {
		r.addNode(t, n)
	}
	for _, p := range pods {
		if p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			r.addPod(t, p)
		}
	}
	r.refresh(t)
}

// refresh takes a new snapshot, as the scheduler does before each pod.
func (r *realScheduler) refresh(t testing.TB) {
	t.Helper()
	if err := r.scheduler.Cache.UpdateSnapshot(klog.FromContext(t.Context()), r.snapshot); err != nil {
		t.Fatal(err)
	}
}

// heartbeat updates all nodes without a change. The scheduler's view of a node
// counts the nodes that have an image as of the node's own last update.
func (r *realScheduler) heartbeat(t testing.TB) {
	for _, n := range slices.Clone(r.nodes) {
		r.updateNode(t, n, n)
	}
}

func (r *realScheduler) addNode(t testing.TB, n *corev1.Node) {
	r.scheduler.Cache.AddNode(klog.FromContext(t.Context()), n)
	r.nodes = append(r.nodes, n)
}

func (r *realScheduler) updateNode(t testing.TB, old, n *corev1.Node) {
	r.scheduler.Cache.UpdateNode(klog.FromContext(t.Context()), old, n)
	r.nodes[slices.Index(r.nodes, old)] = n
}

func (r *realScheduler) removeNode(t testing.TB, n *corev1.Node) {
	t.Helper()
	if err := r.scheduler.Cache.RemoveNode(klog.FromContext(t.Context()), n); err != nil {
		t.Fatal(err)
	}
	at := slices.Index(r.nodes, n)
	r.nodes = slices.Delete(r.nodes, at, at+1)
}

func (r *realScheduler) addPod(t testing.TB, p *corev1.Pod) {
	t.Helper()
	if err := r.scheduler.Cache.AddPod(klog.FromContext(t.Context()), p); err != nil {
		t.Fatal(err)
	}
	r.pods = append(r.pods, p)
}

func (r *realScheduler) removePod(t testing.TB, p *corev1.Pod) {
	t.Helper()
	if err := r.scheduler.Cache.RemovePod(klog.FromContext(t.Context()), p); err != nil {
		t.Fatal(err)
	}
	at := slices.Index(r.pods, p)
	r.pods = slices.Delete(r.pods, at, at+1)
}

// opinion is what the scheduler thinks of a pod.
type opinion struct {
	ctx   context.Context
	r     *realScheduler
	state fwk.CycleState
	pod   *corev1.Pod
	// feasible holds the nodes that pass all filters, by name.
	feasible map[string]fwk.NodeInfo
}

// consider runs the scheduler's filters.
func (r *realScheduler) consider(t testing.TB, pod *corev1.Pod) *opinion {
	t.Helper()
	o := &opinion{ctx: t.Context(), r: r, state: framework.NewCycleState(), pod: pod, feasible: map[string]fwk.NodeInfo{}}
	all, err := r.snapshot.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	allowed, status, _ := r.framework.RunPreFilterPlugins(o.ctx, o.state, pod)
	if !status.IsSuccess() {
		if status.Code() == fwk.Error {
			t.Fatal(status.AsError())
		}
		return o
	}
	for _, n := range all {
		name := n.Node().Name
		if !allowed.AllNodes() && !allowed.NodeNames.Has(name) {
			continue
		}
		switch status := r.framework.RunFilterPluginsWithNominatedPods(o.ctx, o.state, pod, n); {
		case status.IsSuccess():
			o.feasible[name] = n
		case status.Code() == fwk.Error:
			t.Fatal(status.AsError())
		}
	}
	return o
}

// scores are the normalised scores of one node, plugin -> 0 to 100, and their
// weighted total. A plugin that skips the pod scores 0.
type scores struct {
	plugins map[string]int64
	total   int64
}

// score runs the scheduler's score plugins over the nodes. The names must be
// feasible.
func (o *opinion) score(t testing.TB, nodes []string) map[string]scores {
	t.Helper()
	infos := make([]fwk.NodeInfo, len(nodes))
	for i, name := range nodes {
		infos[i] = o.feasible[name]
	}
	if status := o.r.framework.RunPreScorePlugins(o.ctx, o.state, o.pod, infos); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	list, status := o.r.framework.RunScorePlugins(o.ctx, o.state, o.pod, infos)
	if !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	out := map[string]scores{}
	for _, n := range list {
		s := scores{plugins: map[string]int64{}, total: n.TotalScore}
		for _, p := range n.Scores {
			s.plugins[p.Name] = p.Score / o.r.weights[p.Name]
		}
		out[n.Name] = s
	}
	return out
}

// all are the names of the feasible nodes, sorted.
func (o *opinion) all() []string {
	var out []string
	for name := range o.feasible {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// pick is the node with the highest total, empty when none is feasible, and
// whether it is the only one with that total. The scheduler breaks ties at
// random.
func (o *opinion) pick(t testing.TB) (string, bool) {
	t.Helper()
	best, only := "", true
	all := o.score(t, o.all())
	for _, name := range o.all() {
		switch {
		case best == "" || all[name].total > all[best].total:
			best, only = name, true
		case all[name].total == all[best].total:
			only = false
		}
	}
	return best, only
}

// The plugins that our model predicts.
const (
	nodeAffinity       = names.NodeAffinity
	taintToleration    = names.TaintToleration
	nodeResourcesFit   = names.NodeResourcesFit
	balancedAllocation = names.NodeResourcesBalancedAllocation
	imageLocality      = names.ImageLocality
)
