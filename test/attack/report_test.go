package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// result is a row of the report; the first eight keys are a contract.
type result struct {
	Attack  string `json:"attack"`
	OptedIn bool   `json:"optedIn"`
	// Victims is how many pods were created during the attack, Denied how many
	// were refused because of the webhook, Steered how many got a ranking.
	Victims int `json:"victims"`
	Denied  int `json:"denied"`
	Steered int `json:"steered"`
	// SlowestMillis is the slowest creation of a victim.
	SlowestMillis float64 `json:"slowestMillis"`
	// PeakMiB is the most that a replica had resident.
	PeakMiB float64 `json:"peakMiB"`
	// Recovered: everything was normal in time.
	Recovered bool `json:"recovered"`

	Mode  string `json:"mode"`
	Nodes int    `json:"nodes"`
	// Requests is how many of the attacker's requests or connections got through, of at
	// least LeastRequests, and AttackError why the last of the others did not.
	Requests      int    `json:"requests"`
	LeastRequests int    `json:"leastRequests"`
	AttackError   string `json:"attackError,omitempty"`
	// Due is how many victims should have been created.
	Due int `json:"due"`
	// Unavailable is how many tries failed without being denied, and Denial why the
	// victims were denied and the last try failed.
	Unavailable int    `json:"unavailable"`
	Denial      string `json:"denial,omitempty"`
	// Calls is how often the API server has called the webhook for victims, Delayed how
	// many calls took longer than the decision timeout, AllowedDelayed how many may,
	// FailedOpen how many failed and were ignored.
	Calls          int `json:"calls"`
	Delayed        int `json:"delayed"`
	AllowedDelayed int `json:"allowedDelayed"`
	FailedOpen     int `json:"failedOpen"`
	// Decisions are those about all pods, by steering and reason; RankedByMetrics is how
	// many pods the replicas say they have ranked.
	Decisions       map[string]int `json:"decisions"`
	RankedByMetrics int            `json:"rankedByMetrics"`
	// P99Millis is the 99th percentile of the victims' creations, ComparedMillis that of
	// the row with which it is compared; ReferenceMillis is the slowest creation of pods
	// that never come near the webhook, LimitMillis what the slowest victim may take.
	P99Millis       float64 `json:"p99Millis"`
	ComparedMillis  float64 `json:"comparedMillis,omitempty"`
	ReferenceMillis float64 `json:"referenceMillis"`
	LimitMillis     float64 `json:"limitMillis"`
	// KeptMiB is how much more of its heap a replica has in use after the attack, of at
	// most KeptLimitMiB; both are 0 where that is not looked at.
	KeptMiB        float64 `json:"keptMiB"`
	KeptLimitMiB   float64 `json:"keptLimitMiB"`
	MemoryLimitMiB float64 `json:"memoryLimitMiB"`
	// Ended is how many replicas ended, FailedProbes how many probes failed in a row.
	Ended        int `json:"ended"`
	FailedProbes int `json:"failedProbes"`
	// RecoveredSeconds is from the end of the attack until everything was normal, and
	// NotNormal what was not, at the end.
	RecoveredSeconds float64 `json:"recoveredSeconds"`
	NotNormal        string  `json:"notNormal,omitempty"`
	// Seconds is how long the row took.
	Seconds float64 `json:"seconds"`
	// Problems say what was not as it must be.
	Problems []string `json:"problems,omitempty"`
}

// reportFile collects the rows of a run.
type reportFile struct{ rows []result }

func (r *reportFile) add(row result) { r.rows = append(r.rows, row) }

// p99 is the 99th percentile of the row of that name, 0 if there is none in this run.
func (r *reportFile) p99(name, mode string) float64 {
	for i := range r.rows {
		if r.rows[i].Attack == name && r.rows[i].Mode == mode {
			return r.rows[i].P99Millis
		}
	}
	return 0
}

// save prints the rows and writes them to bin/reports/attack.json, where other rows
// stay: those of the other form, and those that -run has left out.
func (r *reportFile) save(out io.Writer) error {
	if len(r.rows) == 0 {
		return nil
	}
	r.print(out)
	path, err := reports.Path("attack.json")
	if err != nil {
		return err
	}
	rows, err := readRows(path)
	if err != nil {
		return err
	}
	return reports.Write(path, merge(rows, r.rows))
}

// merge replaces rows by those of the same name and form.
func merge(rows, fresh []result) []result {
	rows = slices.DeleteFunc(rows, func(old result) bool {
		return slices.ContainsFunc(fresh, func(row result) bool {
			return row.Attack == old.Attack && row.OptedIn == old.OptedIn && row.Mode == old.Mode
		})
	})
	return append(rows, fresh...)
}

// readRows reads the rows of earlier runs, if there are any.
func readRows(path string) (rows []result, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("reading the report %s: %w", path, err)
	}
	return rows, nil
}

// header and line are rows of the table in the README.
const header = `| attack | opted in | the attacker's requests | victims | denied | steered | calls over 500 ms | slowest creation | memory | normal again after |
|---|---|---|---|---|---|---|---|---|---|`

func (r *result) line() string {
	normal, optedIn := "never", "no"
	if r.Recovered {
		normal = fmt.Sprintf("%.1f s", r.RecoveredSeconds)
	}
	if r.OptedIn {
		optedIn = "yes"
	}
	return fmt.Sprintf("| %s | %s | %d | %d | **%d** | %d | %d | %.1f s | %.0f MiB | %s |",
		r.Attack, optedIn, r.Requests, r.Victims, r.Denied, r.Steered, r.Delayed, r.SlowestMillis/1000, r.PeakMiB, normal)
}

// print writes the table, and what was not as it must be.
func (r *reportFile) print(out io.Writer) {
	fmt.Fprintf(out, "\n%d nodes\n\n%s\n", r.rows[0].Nodes, header)
	for i := range r.rows {
		fmt.Fprintln(out, r.rows[i].line())
	}
	fmt.Fprintln(out)
	for i := range r.rows {
		for _, problem := range r.rows[i].Problems {
			fmt.Fprintf(out, "PROBLEM in %s: %s\n", r.rows[i].Attack, problem)
		}
	}
}

// A run of some rows leaves the others in the report.
func TestMerge(t *testing.T) {
	old := []result{
		{Attack: "a", OptedIn: true, Mode: "full", Victims: 1}, {Attack: "a", Mode: "full", Victims: 2},
		{Attack: "a", OptedIn: true, Mode: "short", Victims: 3}, {Attack: "b", OptedIn: true, Mode: "full", Victims: 4},
	}
	var victims []int
	for _, row := range merge(old, []result{{Attack: "a", OptedIn: true, Mode: "full", Victims: 5}}) {
		victims = append(victims, row.Victims)
	}
	if want := []int{2, 3, 4, 5}; !slices.Equal(victims, want) {
		t.Errorf("rows %v, want %v", victims, want)
	}
}
