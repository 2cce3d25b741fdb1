package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
)

// A step of time, with so many pods without a decision so far, and whether we were
// called.
type callStep struct {
	after     time.Duration
	unsteered int
	called    bool
	want      bool
}

func TestCallCheck(t *testing.T) {
	const minute = time.Minute
	tests := map[string][]callStep{
		"no pods":                          {{after: 60 * minute}},
		"pods, and never called":           {{after: minute, unsteered: 3}, {after: 3 * minute, unsteered: 9}, {after: minute, unsteered: 9, want: true}, {after: minute, unsteered: 10, want: true}},
		"pods, and called now":             {{after: 6 * minute, unsteered: 3, want: true}, {after: minute, unsteered: 4, called: true}, {after: minute, unsteered: 4}},
		"skipped pods, called often":       {{after: 4 * minute, unsteered: 3, called: true}, {after: 4 * minute, unsteered: 9, called: true}, {after: 4 * minute, unsteered: 19, called: true}},
		"asked, and the pod appears later": {{after: minute, called: true}, {after: 20 * time.Second, unsteered: 1}, {after: 10 * minute, unsteered: 1}},
		"calls ended, then pods came":      {{after: minute, called: true}, {after: 10 * minute}, {after: minute, unsteered: 1, want: true}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			now, last, unsteered, warnings := time.Unix(1_000_000, 0), int64(0), 0, 0
			log := funcr.New(func(_, args string) {
				if strings.Contains(args, "Nothing calls this replica") {
					warnings++
				}
			}, funcr.Options{})
			c := newCallCheck(func() int { return unsteered }, func() int64 { return last }, func() time.Time { return now }, log)
			warned := false
			for i, s := range steps {
				now, unsteered = now.Add(s.after), s.unsteered
				if s.called {
					last = now.UnixNano()
				}
				c.check()
				if got := c.missing.Load(); got != s.want {
					t.Errorf("step %d: missing calls %v, want %v", i, got, s.want)
				}
				warned = warned || s.want
			}
			if want := map[bool]int{true: 1}[warned]; warnings != want {
				t.Errorf("%d warnings in the log, want %d", warnings, want)
			}
		})
	}
}
