package workload

import "fmt"

// WithMultiGPU returns a trace of as many pods with the same nodes, in which pods
// with several GPUs ask for the given share, 0 to 1, of all GPUs that are asked
// for. In the trace itself the share is 6%; clusters that train large models have
// more. Each pod is one of the trace, with its CPU, memory and lifetime, drawn at
// random from those with one GPU or from those with several.
func (t *Trace) WithMultiGPU(share float64, seed uint64) *Trace {
	r := newRand(seed, 5)
	var single, multi []TracePod
	var multiGPUs int64
	for _, pod := range t.Pods {
		if pod.GPUs > 1 {
			multi = append(multi, pod)
			multiGPUs += pod.GPUs
		} else {
			single = append(single, pod)
		}
	}
	// With p the share of pods that have several GPUs and m what those have on
	// average, share = p*m / (p*m + 1-p), so p = share / (m - share*(m-1)).
	mean := float64(multiGPUs) / float64(max(len(multi), 1))
	probability := share / (mean - share*(mean-1))
	mixed := &Trace{Name: fmt.Sprintf("%s-multi%.0f", t.Name, 100*share), Nodes: t.Nodes}
	for _, at := range t.Pods {
		pod := single[r.IntN(len(single))]
		if r.Float64() < probability {
			pod = multi[r.IntN(len(multi))]
		}
		// The order of arrival stays that of the trace.
		lifetime := pod.Deleted - pod.Created
		pod.Created, pod.Deleted = at.Created, at.Created+lifetime
		mixed.Pods = append(mixed.Pods, pod)
	}
	return mixed
}
