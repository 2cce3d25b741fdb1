package scheduler

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// MaxNodeScore is the scheduler's MaxNodeScore: every plugin scores 0 to 100.
const MaxNodeScore = 100

// Model predicts, for one pod, what the scheduler's plugins other than
// NodeAffinity give a node, in points of its total, in one version of Kubernetes.
// Formulas: k8s.io/kubernetes pkg/scheduler/framework/plugins, checked against the
// real plugins in test/. Spreading and inter-pod affinity are constant for the pods
// we steer and left out.
type Model struct {
	cfg      *config.Scheduler
	formulas Formulas
	demand   *demand.Demand
	// images are those of the pod, normalised, that any node has.
	images map[string]imageUses
	// sources is how many images the pod has, on nodes or not.
	sources       imageUses
	table         Images
	nodes         int64 // in the cluster, candidates or not
	MaxSoftTaints int64 // over the feasible nodes
}

// imageUses is how often a pod uses an image, by containers and as a volume.
type imageUses struct{ containers, volumes int64 }

func (u imageUses) plus(other imageUses) imageUses {
	return imageUses{u.containers + other.containers, u.volumes + other.volumes}
}

// NewModel returns the model for a pod in a cluster of so many nodes.
func NewModel(cfg *config.Scheduler, f Formulas, pod *corev1.Pod, d *demand.Demand, table Images, count int) Model {
	m := Model{cfg: cfg, formulas: f, demand: d, table: table, nodes: int64(count), images: map[string]imageUses{}}
	m.addImages(pod.Spec.InitContainers)
	m.addImages(pod.Spec.Containers)
	for i := range pod.Spec.Volumes {
		if image := pod.Spec.Volumes[i].Image; image != nil {
			m.addImage(image.Reference, imageUses{volumes: 1})
		}
	}
	return m
}

func (m *Model) addImages(containers []corev1.Container) {
	for i := range containers {
		m.addImage(containers[i].Image, imageUses{containers: 1})
	}
}

func (m *Model) addImage(name string, use imageUses) {
	m.sources = m.sources.plus(use)
	name = normalizedImage(name)
	// An image that no node has scores nowhere.
	if _, ok := m.table[name]; ok {
		m.images[name] = m.images[name].plus(use)
	}
}

// normalizedImage adds the tag "latest" where a name has none.
func normalizedImage(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		return name + ":latest"
	}
	return name
}

// Feasible is a node that can take the pod, as the model sees it.
type Feasible struct {
	*nodes.State
	// SoftTaints is how many PreferNoSchedule taints it has that the pod does not
	// tolerate.
	SoftTaints int64
}

// SameTo tells whether two nodes get the same points whatever happens.
func (n *Feasible) SameTo(o *Feasible) bool {
	return n.SoftTaints == o.SoftTaints && n.Used.Equal(o.Used) &&
		slices.Equal(n.Allocatable, o.Allocatable) && slices.Equal(n.Images, o.Images)
}

// PointRange is a range of points, both ends included.
type PointRange struct {
	min, max int64
}

// maxLevels bounds the fill levels examined on either side of the present one.
// Nodes have at most 128 devices of a kind in practice (Neuron cores); beyond, a
// time-sliced resource may have more, and its ends matter most.
const maxLevels = 256

// pointsWhileFilling is the range of points over every fill level that copies of
// this pod bring the node to: from the level without the copies that its present
// usage could consist of, to full. Going down as well as up makes the range the
// same for all copies that fill the node, which keeps their terms identical.
func (m *Model) pointsWhileFilling(n *Feasible) PointRange {
	below, above := m.levels(n)
	low, high := int64(math.MaxInt64), int64(math.MinInt64)
	for level := -below; level < above; level++ {
		points := m.resourcePoints(n.State, level)
		low, high = min(low, points), max(high, points)
	}
	fixed := m.cfg.PluginWeights.ImageLocality * m.imageLocality(n.Node)
	taints := m.taintPoints(n.SoftTaints)
	return PointRange{min: low + fixed + taints.min, max: high + fixed + taints.max}
}

// levels returns how many copies of the pod the node's usage could hold, and how
// many more fit (at least one, since the node is feasible).
func (m *Model) levels(n *Feasible) (below, above int64) {
	below, above = maxLevels, min(maxLevels, n.Allocatable.Get(corev1.ResourcePods)-n.Used.Pods)
	for _, r := range m.demand.Requests {
		used := n.Used.Requests.Get(r.Name)
		below = min(below, used/r.Value)
		above = min(above, (n.Allocatable.Get(r.Name)-used)/r.Value)
	}
	if m.demand.ScoringCPU > 0 {
		below = min(below, n.Used.ScoringCPU/m.demand.ScoringCPU)
	}
	if m.demand.ScoringMemory > 0 {
		below = min(below, n.Used.ScoringMemory/m.demand.ScoringMemory)
	}
	return max(below, 0), max(above, 1)
}

// resourcePoints is NodeResourcesFit plus BalancedAllocation when the pod comes
// to the node after level more copies of it (fewer, when negative).
func (m *Model) resourcePoints(s *nodes.State, level int64) int64 {
	w := &m.cfg.PluginWeights
	return w.NodeResourcesFit*m.fit(s, level) + w.BalancedAllocation*m.balanced(s, level)
}

// fit is NodeResourcesFit: the weighted mean over the configured resources of
// what each scores after placement.
func (m *Model) fit(s *nodes.State, level int64) int64 {
	strategy := &m.cfg.ScoringStrategy
	var sum, weights int64
	for _, r := range strategy.Resources {
		name := corev1.ResourceName(r.Name)
		request, perCopy, used := m.scoringAmounts(s, name)
		allocatable := s.Allocatable.Get(name)
		if allocatable == 0 || request == 0 && isScalar(name) {
			continue
		}
		points := strategyPoints(strategy, used+level*perCopy+request, allocatable)
		if points == 0 && strategy.Type == config.SchedulerRequestedToCapacityRatio {
			continue // which that type leaves out of the mean
		}
		sum += r.Weight * points
		weights += r.Weight
	}
	return weightedMean(strategy, sum, weights)
}

// scoringAmounts returns what the pod requests, what each copy of it on the node
// counts for, and what the node has in use, as NodeResourcesFit counts them.
func (m *Model) scoringAmounts(s *nodes.State, name corev1.ResourceName) (request, perCopy, used int64) {
	d := m.demand
	switch name {
	case corev1.ResourceCPU:
		return d.FitCPU, d.ScoringCPU, s.Used.ScoringCPU
	case corev1.ResourceMemory:
		return d.FitMemory, d.ScoringMemory, s.Used.ScoringMemory
	default:
		request = d.Requests.Get(name)
		return request, request, s.Used.Requests.Get(name)
	}
}

// isScalar tells whether the scheduler skips the resource for pods that do not
// ask for it.
func isScalar(name corev1.ResourceName) bool {
	return name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage
}

// balanced is NodeResourcesBalancedAllocation on CPU and memory, 0 for pods that
// request neither.
func (m *Model) balanced(s *nodes.State, level int64) int64 {
	cpu, memory := m.demand.Requests.Get(corev1.ResourceCPU), m.demand.Requests.Get(corev1.ResourceMemory)
	if cpu == 0 && memory == 0 {
		return 0
	}
	usedCPU := s.Used.Requests.Get(corev1.ResourceCPU) + level*cpu
	usedMemory := s.Used.Requests.Get(corev1.ResourceMemory) + level*memory
	after := balance(s, usedCPU+cpu, usedMemory+memory)
	if !m.formulas.balanceGain {
		return after
	}
	before := balance(s, usedCPU, usedMemory)
	return MaxNodeScore/2 + (MaxNodeScore/2+after-before)/2
}

// balance is 100 * (1 - |CPU share - memory share| / 2): the standard deviation
// of two values is half their distance.
func balance(s *nodes.State, cpu, memory int64) int64 {
	allocatableCPU, allocatableMemory := s.Allocatable.Get(corev1.ResourceCPU), s.Allocatable.Get(corev1.ResourceMemory)
	if allocatableCPU == 0 || allocatableMemory == 0 {
		return MaxNodeScore
	}
	cpuShare := min(float64(cpu)/float64(allocatableCPU), 1)
	memoryShare := min(float64(memory)/float64(allocatableMemory), 1)
	return int64((1 - math.Abs((cpuShare-memoryShare)/2)) * MaxNodeScore)
}

// taintPoints is the range of TaintToleration: exactly full without untolerated
// PreferNoSchedule taints, else between zero (the node has the most of those
// the scheduler examines) and what the most in the whole cluster leave it.
func (m *Model) taintPoints(softTaints int64) PointRange {
	w := m.cfg.PluginWeights.TaintToleration
	if softTaints == 0 {
		return PointRange{min: w * MaxNodeScore, max: w * MaxNodeScore}
	}
	most := max(m.MaxSoftTaints, softTaints)
	return PointRange{min: 0, max: w * (MaxNodeScore - MaxNodeScore*softTaints/most)}
}

// Thresholds of ImageLocality, in bytes.
const (
	imageMin = 23 << 20
	imageMax = 1000 << 20 // per container
)

// imageLocality is ImageLocality: the sizes of the pod's images that are on the
// node, each scaled by the share of nodes that have it, between the thresholds.
func (m *Model) imageLocality(n *nodes.Node) int64 {
	if len(m.images) == 0 {
		return 0
	}
	var sum int64
	for name, uses := range m.images {
		if !n.HasImage(name) {
			continue
		}
		times := uses.containers
		if m.formulas.imageVolumes {
			times += uses.volumes
		}
		image := m.table[name]
		spread := float64(image.nodes) / float64(m.nodes)
		sum += times * int64(float64(image.size)*spread)
	}
	count := m.sources.containers
	if m.formulas.volumesInDivisor {
		count += m.sources.volumes
	}
	top := imageMax * count
	sum = min(max(sum, imageMin), top)
	return MaxNodeScore * (sum - imageMin) / (top - imageMin)
}
