package workload

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Files of the openb trace (github.com/alibaba/clusterdata,
// cluster-trace-gpu-v2023), which the user provides.
const (
	traceNodesFile = "openb_node_list_gpu_node.csv"
	tracePodsFile  = "openb_pod_list_%s.csv"

	// DefaultList is the list of pods as they were in the traced cluster; other
	// lists of the trace have other mixes of sizes.
	DefaultList = "default"
)

// Trace is the openb trace: its GPU nodes, and its pods that ask for GPUs. Pods
// that ask for a part of one GPU count as asking for one, since Kubernetes knows
// whole devices only; pods without GPUs, and the column gpu_spec (a wish for a
// GPU model, empty in this list), are left out.
type Trace struct {
	// Name is openb, with the name of the list of pods if it is another than the
	// default.
	Name  string
	Nodes []Amounts
	Pods  []TracePod
}

// TracePod is one pod, with its times in seconds from the start of the trace.
type TracePod struct {
	Amounts
	Created, Deleted int64
}

// ReadTrace reads the trace's nodes and one of its lists of pods from a folder.
func ReadTrace(dir, list string) (*Trace, error) {
	t := &Trace{Name: Openb}
	if list != DefaultList {
		t.Name += "-" + list
	}
	err := readRows(filepath.Join(dir, traceNodesFile), func(row rowReader) {
		t.Nodes = append(t.Nodes, Amounts{
			GPUs: row.int("gpu"), MilliCPU: row.int("cpu_milli"), MemoryMiB: row.int("memory_mib"),
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	err = readRows(filepath.Join(dir, fmt.Sprintf(tracePodsFile, list)), func(row rowReader) {
		pod := TracePod{
			Amounts: Amounts{GPUs: row.int("num_gpu"), MilliCPU: row.int("cpu_milli"), MemoryMiB: row.int("memory_mib")},
			Created: row.int("creation_time"),
			Deleted: row.int("deletion_time"),
		}
		if pod.GPUs > 0 {
			t.Pods = append(t.Pods, pod)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	return t, nil
}

// rowReader reads one row by the names of the columns. The first value that is
// no number sets the error.
type rowReader struct {
	columns map[string]int
	values  []string
	err     *error
}

func (r rowReader) int(column string) int64 {
	at, ok := r.columns[column]
	if !ok {
		*r.err = fmt.Errorf("no column %q", column)
		return 0
	}
	n, err := strconv.ParseInt(r.values[at], 10, 64)
	if err != nil && *r.err == nil {
		*r.err = fmt.Errorf("column %q: %w", column, err)
	}
	return n
}

// readRows calls read for each row of a CSV file with a header.
func readRows(path string, read func(rowReader)) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s is empty", path)
	}
	columns := map[string]int{}
	for i, name := range rows[0] {
		columns[name] = i
	}
	for i, values := range rows[1:] {
		read(rowReader{columns: columns, values: values, err: &err})
		if err != nil {
			return fmt.Errorf("%s, line %d: %w", path, i+2, err)
		}
	}
	return nil
}

// Workload returns pods of the trace, drawn at random, until they ask for the
// given share of the GPUs. Pods that ask for the same become ReplicaSets of 1 to
// 40. rate is in pods per second; 0 means as fast as possible.
func (t *Trace) Workload(load, rate float64, seed uint64) *Workload {
	w := &Workload{
		Name: t.Name, Owner: ReplicaSet, Arrival: Burst, RatePerSecond: rate, Load: load, Seed: seed, Nodes: t.Nodes,
	}
	if rate > 0 {
		w.Arrival = Rate
	}
	r := newRand(seed, 3)
	left := int64(load * float64(w.GPUs()))
	bySize := map[Amounts]int{}
	for _, i := range r.Perm(len(t.Pods)) {
		pod := t.Pods[i].Amounts
		if pod.GPUs > left {
			continue
		}
		left -= pod.GPUs
		bySize[pod]++
	}
	sizes := sortedSizes(bySize)
	for _, size := range sizes {
		for more := bySize[size]; more > 0; {
			replicas := min(more, 1+r.IntN(maxReplicas))
			more -= replicas
			w.Groups = append(w.Groups, size)
			w.Pods = append(w.Pods, replicas)
		}
	}
	// Pods holds the replicas of each group so far: put the groups in a random
	// order and write their pods out.
	replicas := w.Pods
	w.Pods = nil
	for _, group := range r.Perm(len(w.Groups)) {
		w.Pods = append(w.Pods, times(replicas[group], group)...)
	}
	return w
}

// sortedSizes returns the keys in a fixed order.
func sortedSizes[V any](bySize map[Amounts]V) []Amounts {
	sizes := make([]Amounts, 0, len(bySize))
	for size := range bySize {
		sizes = append(sizes, size)
	}
	slices.SortFunc(sizes, func(a, b Amounts) int {
		return cmp.Or(cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.MilliCPU, b.MilliCPU), cmp.Compare(a.MemoryMiB, b.MemoryMiB))
	})
	return sizes
}
