package workload

import (
	"cmp"
	"slices"
)

// Bound is a lower bound of what any placement of pods occupies.
type Bound struct {
	// Nodes and GPUs are the fewest nodes, and the fewest GPUs on nodes, that can
	// hold the pods. The two may need different sets of nodes.
	Nodes int
	GPUs  int64
}

// LowerBound computes the bound for pods of the given numbers of GPUs. CPU and
// memory are not looked at, which can only make the bound lower.
//
// Let the sizes of nodes be c1 < c2 < ... A pod larger than c(j-1) needs a node
// of at least c(j), so with D(j) the GPUs of those pods, nodes of at least c(j)
// must add up to M(j):
//
//   - at least D(j);
//   - at least what the nodes below cannot take over: M(j-1) - n(j-1)*c(j-1);
//   - a multiple of the greatest common divisor of the sizes from c(j) on.
//
// Going down again, nodes of at least c(j) add up to max(M(j), the sum for j+1).
// When each size divides the next, for nodes and pods, as with 1, 2, 4 and 8, the
// bound is exact: sorted by size, such pods fill nodes without gaps.
func LowerBound(nodes []Amounts, podGPUs []int64) Bound {
	sizes, counts := nodeSizes(nodes)
	var least, carry int64
	needs := make([]int64, len(sizes))
	for j, size := range sizes {
		below := int64(0)
		if j > 0 {
			below = sizes[j-1]
		}
		need := max(demandAbove(podGPUs, below), carry)
		needs[j] = roundUp(need, gcd(sizes[j:]))
		carry = needs[j] - counts[j]*size
	}
	for _, need := range slices.Backward(needs) {
		least = max(least, need)
	}
	return Bound{Nodes: fewestNodes(nodes, podGPUs), GPUs: least}
}

// fewestNodes fills the largest nodes first.
func fewestNodes(nodes []Amounts, podGPUs []int64) int {
	left := demandAbove(podGPUs, 0)
	sorted := slices.SortedFunc(slices.Values(nodes), func(a, b Amounts) int { return cmp.Compare(b.GPUs, a.GPUs) })
	for used, n := range sorted {
		if left <= 0 {
			return used
		}
		left -= n.GPUs
	}
	return len(nodes)
}

// nodeSizes returns the different sizes, smallest first, and how many nodes have
// each.
func nodeSizes(nodes []Amounts) (sizes, counts []int64) {
	bySize := map[int64]int64{}
	for _, n := range nodes {
		if n.GPUs > 0 {
			bySize[n.GPUs]++
		}
	}
	for size := range bySize {
		sizes = append(sizes, size)
	}
	slices.Sort(sizes)
	for _, size := range sizes {
		counts = append(counts, bySize[size])
	}
	return sizes, counts
}

// demandAbove adds up the GPUs of pods that ask for more than size.
func demandAbove(podGPUs []int64, size int64) int64 {
	var sum int64
	for _, gpus := range podGPUs {
		if gpus > size {
			sum += gpus
		}
	}
	return sum
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }

func gcd(values []int64) int64 {
	result := values[0]
	for _, v := range values[1:] {
		for v != 0 {
			result, v = v, result%v
		}
	}
	return result
}

// Bound returns the bound for all pods of the workload. For one with churn it is
// the average over the measured events, of the pods that are there if none has to
// wait; Nodes is then rounded up.
func (w *Workload) Bound() Bound {
	if !w.HasChurn() {
		all := make([]int64, len(w.Pods))
		for i := range w.Pods {
			all[i] = w.Pod(i).GPUs
		}
		return LowerBound(w.Nodes, all)
	}
	present := newPresence(w)
	var gpus, nodes, samples int64
	for i, e := range w.Events {
		present.apply(e)
		// Every 16th event is enough for an average.
		if i < w.Fill || i%16 != 0 {
			continue
		}
		b := LowerBound(w.Nodes, present.gpus())
		gpus, nodes, samples = gpus+b.GPUs, nodes+int64(b.Nodes), samples+1
	}
	samples = max(samples, 1)
	return Bound{Nodes: int((nodes + samples - 1) / samples), GPUs: (gpus + samples/2) / samples}
}

// AverageRequested returns the average GPUs of the pods that are there, as Bound.
func (w *Workload) AverageRequested() float64 {
	if !w.HasChurn() {
		return float64(w.Requested())
	}
	present := newPresence(w)
	var sum, current int64
	for i, e := range w.Events {
		present.apply(e)
		if gpus := w.Pod(e.Pod).GPUs; e.Leaves {
			current -= gpus
		} else {
			current += gpus
		}
		if i >= w.Fill {
			sum += current
		}
	}
	return float64(sum) / float64(max(len(w.Events)-w.Fill, 1))
}

// presence follows which pods are there.
type presence struct {
	w    *Workload
	here map[int]bool
}

func newPresence(w *Workload) *presence { return &presence{w: w, here: map[int]bool{}} }

func (p *presence) apply(e Event) {
	if e.Leaves {
		delete(p.here, e.Pod)
		return
	}
	p.here[e.Pod] = true
}

func (p *presence) gpus() []int64 {
	gpus := make([]int64, 0, len(p.here))
	for pod := range p.here {
		gpus = append(gpus, p.w.Pod(pod).GPUs)
	}
	return gpus
}
