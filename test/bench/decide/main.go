// Command decide measures what a decision costs in clusters of different shape and
// size, next to a naive decision in the same run, and writes
// bin/reports/decide.json.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/naive"
	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// result is one line of decide.json.
type result struct {
	Nodes       int     `json:"nodes"`
	Pods        int     `json:"pods"`
	Shape       string  `json:"shape"`
	System      string  `json:"system"`
	NsPerOp     float64 `json:"nsPerOp"`
	AllocsPerOp int64   `json:"allocsPerOp"`
	BytesPerOp  int64   `json:"bytesPerOp"`
}

// benchTime is how long each measurement takes at least, unless the command line says
// otherwise. In the second that is usual, a collection of the garbage of a cluster of
// 450,000 pods takes more than all decisions.
const benchTime = "4s"

func main() {
	sizes := flag.String("nodes", "100,1000,5000,15000", "sizes of the clusters, comma-separated; the first is what others are compared with")
	testing.Init()
	if err := flag.Set("test.benchtime", benchTime); err != nil {
		panic(err) // the flag is gone
	}
	flag.Parse()
	if err := run(os.Stdout, *sizes); err != nil {
		fmt.Fprintln(os.Stderr, "decide:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, sizes string) error {
	var results []result
	for i := range cluster.Shapes {
		for _, text := range strings.Split(sizes, ",") {
			nodes, err := strconv.Atoi(text)
			if err != nil || nodes < 1 {
				return fmt.Errorf("-nodes: %q is no number of nodes", text)
			}
			if nodes < cluster.Shapes[i].Least {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s, %d nodes\n", cluster.Shapes[i].Name, nodes)
			both, err := measureShape(&cluster.Shapes[i], nodes)
			if err != nil {
				return err
			}
			results = append(results, both...)
		}
	}
	if err := writeTable(out, results); err != nil {
		return err
	}
	return save(results)
}

// measureShape measures both systems on one cluster, one after the other: the collector
// goes through everything in the process, and the cluster of the other is more than
// there is in the product.
func measureShape(s *cluster.Shape, nodes int) ([]result, error) {
	var results []result
	for _, m := range []struct {
		name  string
		build func() (system, error)
	}{
		{"ours", func() (system, error) { return newOurs(s, nodes) }},
		{"naive", func() (system, error) { return naive.New(s, nodes), nil }},
	} {
		built, err := m.build()
		if err != nil {
			return nil, err
		}
		r, err := measure(s, built)
		if err != nil {
			return nil, fmt.Errorf("%s on %s with %d nodes: %w", m.name, s.Name, nodes, err)
		}
		r.Nodes, r.Pods, r.Shape, r.System = nodes, s.PodCount(nodes), s.Name, m.name
		results = append(results, r)
	}
	return results, nil
}

func measure(s *cluster.Shape, system system) (result, error) {
	pod := s.Incoming()
	if err := s.CheckTarget(system.Decide(pod)); err != nil { // also makes the pool
		return result{}, err
	}
	runtime.GC() // of what building the cluster left
	var wrong error
	b := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.CheckTarget(system.Decide(pod)); err != nil {
				wrong = err
				b.FailNow()
			}
		}
	})
	return result{NsPerOp: float64(b.T.Nanoseconds()) / float64(b.N), AllocsPerOp: b.AllocsPerOp(), BytesPerOp: b.AllocedBytesPerOp()}, wrong
}

// writeTable prints the results with two ratios: to the smallest cluster of the
// shape, and to the naive decision.
func writeTable(out io.Writer, results []result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "shape\tnodes\tpods\tdecision µs\tto the smallest\tallocations\tnaive µs\tnaive / ours")
	smallest := map[string]float64{}
	for i := 0; i+1 < len(results); i += 2 {
		ours, other := results[i], results[i+1]
		if smallest[ours.Shape] == 0 {
			smallest[ours.Shape] = ours.NsPerOp
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%.1f\t%.2f\t%d\t%.0f\t%.0f\n", ours.Shape, ours.Nodes, ours.Pods, ours.NsPerOp/1000,
			ours.NsPerOp/smallest[ours.Shape], ours.AllocsPerOp, other.NsPerOp/1000, other.NsPerOp/ours.NsPerOp)
	}
	return table.Flush()
}

func save(results []result) error {
	path, err := reports.Path("decide.json")
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "saving:", path)
	return reports.Write(path, results)
}
