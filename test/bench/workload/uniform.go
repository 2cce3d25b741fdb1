package workload

// Nodes and pods of common 8-GPU machines: 12 CPUs and 144 GiB per GPU on the
// node, of which a pod takes 8 and 64 per GPU.
const (
	nodeMilliCPUPerGPU  = 12_000
	nodeMemoryMiBPerGPU = 144 << 10
	podMilliCPUPerGPU   = 8_000
	podMemoryMiBPerGPU  = 64 << 10
	gpusPerNode         = 8
)

// NewUniform returns equal nodes with 8 GPUs and one group of 1-GPU pods that
// load them to the given share.
func NewUniform(nodes int, load float64, owner Owner, arrival Arrival, seed uint64) *Workload {
	w := equalNodes(nodes, load, owner, arrival, seed)
	w.Name = Uniform
	w.Groups = []Amounts{podWith(1)}
	w.Pods = make([]int, int(load*float64(w.GPUs())+0.5))
	return w
}

// NewWaiting is NewUniform in one burst at half load, with the pods there before
// the nodes.
func NewWaiting(nodes int, seed uint64) *Workload {
	w := NewUniform(nodes, 0.5, ReplicaSet, Burst, seed)
	w.Name = Waiting
	w.NodesLast = true
	return w
}

// mixedSizes are GPUs of a pod and its share of all GPUs requested, in percent.
var mixedSizes = []struct {
	gpus    int64
	percent float64
}{{1, 40}, {2, 20}, {4, 20}, {8, 20}}

// NewMixed returns equal nodes with 8 GPUs and pods of 1, 2, 4 and 8 GPUs in a
// random order, one group per size.
func NewMixed(nodes int, load float64, arrival Arrival, seed uint64) *Workload {
	w := equalNodes(nodes, load, ReplicaSet, arrival, seed)
	w.Name = Mixed
	total := load * float64(w.GPUs())
	for group, size := range mixedSizes {
		w.Groups = append(w.Groups, podWith(size.gpus))
		count := int(total*size.percent/100/float64(size.gpus) + 0.5)
		w.Pods = append(w.Pods, times(count, group)...)
	}
	r := newRand(seed, 1)
	r.Shuffle(len(w.Pods), func(i, j int) { w.Pods[i], w.Pods[j] = w.Pods[j], w.Pods[i] })
	return w
}

func equalNodes(nodes int, load float64, owner Owner, arrival Arrival, seed uint64) *Workload {
	node := Amounts{
		GPUs:      gpusPerNode,
		MilliCPU:  gpusPerNode * nodeMilliCPUPerGPU,
		MemoryMiB: gpusPerNode * nodeMemoryMiBPerGPU,
	}
	return &Workload{Owner: owner, Arrival: arrival, Load: load, Seed: seed, Nodes: times(nodes, node)}
}

func podWith(gpus int64) Amounts {
	return Amounts{GPUs: gpus, MilliCPU: gpus * podMilliCPUPerGPU, MemoryMiB: gpus * podMemoryMiBPerGPU}
}
