package server

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/pool"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// What the table of docs/security.md adds up: everything that is bounded, each at its
// bound, in a cluster of 5,000 nodes and 150,000 pods.
const (
	tableNodes = 5_000
	// indexMiB is what the whole process takes there when all has settled (make
	// bench-scale, see docs/performance.md).
	indexMiB = 167
	// hostilePods are in place of others of the 150,000: 100 a second, each of which stays
	// for 100 s until its kubelet or the pod garbage collector ends it.
	hostilePods = 10_000
	// portSlop is what the HTTP server adds to the limit of headers, which it reads into
	// something that may be twice as large.
	portSlop = 4 << 10
	// scrapeBytes is what an answer with all metrics takes, compressed and not.
	scrapeBytes = 1 << 20
)

var budget = []struct {
	what  string
	bytes int
}{
	{"process and index", indexMiB << 20},
	{"hostile pods in the index", hostilePods * demand.MaxLoadBytes},
	{"lists of pods on their way", index.MaxListedBytes},
	{"texts of nodes", 2 * nodes.MaxTextBytes},
	{"texts of pods", 2 * reduced.MaxPodTextBytes},
	{"loads", 2 * reduced.MaxLoadBytes},
	{"pools", pool.MaxBytes(tableNodes)},
	{"requests", memoryBudget},
	{"connections", maxConnections * connectionBytes},
	{"health port", healthLimits.connections * (connectionBytes + 2*(healthLimits.headerBytes+portSlop))},
	{"metrics port", metricsLimits.connections*(connectionBytes+2*(metricsLimits.headerBytes+portSlop)) + maxScrapes*scrapeBytes},
}

// The table adds up what the constants say, and the sum is below what the collector may
// let the process grow to, which is below the limit.
func TestMemoryTable(t *testing.T) {
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "\n## Memory\n")
	sum := 0
	for _, row := range budget {
		sum += row.bytes
		checkMemoryRow(t, section, row.what, row.bytes)
	}
	checkMemoryRow(t, section, "all together", sum)
	deployment, err := os.ReadFile(filepath.Join("..", "..", "config", "manager", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	collector := regexp.MustCompile(`value: (\d+)MiB`).FindSubmatch(deployment)
	if collector == nil {
		t.Fatal("no GOMEMLIMIT in the Deployment")
	}
	if limit, _ := strconv.Atoi(string(collector[1])); sum > limit<<20 {
		t.Errorf("all bounds together are %d MiB, above GOMEMLIMIT, %d MiB", sum>>20, limit)
	}
	performance, err := os.ReadFile(filepath.Join("..", "..", "docs", "performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(performance), fmt.Sprintf("| %d MiB settled", indexMiB)) {
		t.Errorf("docs/performance.md has measured something else than %d MiB", indexMiB)
	}
}

// checkMemoryRow checks the last column of a row of the table: MiB, rounded up.
func checkMemoryRow(t *testing.T, document, what string, bytes int) {
	t.Helper()
	want := int(math.Ceil(float64(bytes) / (1 << 20)))
	for line := range strings.Lines(document) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if strings.TrimSpace(cells[0]) != what || len(cells) < 3 {
			continue
		}
		if got := strings.TrimSpace(cells[len(cells)-1]); got != strconv.Itoa(want) {
			t.Errorf("docs/security.md says %s MiB for %s, want %d (%d bytes)", got, what, want, bytes)
		}
		return
	}
	t.Errorf("docs/security.md has no row for %s: %d MiB", what, want)
}
