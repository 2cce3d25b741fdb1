package procfs

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	for name, tc := range map[string]struct {
		stat    string
		want    time.Duration
		wantErr bool
	}{
		// 150 + 25 ticks of 10 ms
		"plain":            {stat: "42 (server) S 1 42 42 0 -1 4194304 10 20 30 40 150 25 7 8 20 0 1 0 1", want: 1750 * time.Millisecond},
		"name with fields": {stat: "42 (a) b (c d) S 1 42 42 0 -1 4194304 10 20 30 40 3 4 7 8 20", want: 70 * time.Millisecond},
		"too short":        {stat: "42 (server) S 1 42", wantErr: true},
		"no number":        {stat: "42 (server) S 1 42 42 0 -1 4194304 10 20 30 40 x 25 7 8", wantErr: true},
		"empty":            {wantErr: true},
	} {
		got, err := parseStat([]byte(tc.stat))
		if got != tc.want && !tc.wantErr || (err != nil) != tc.wantErr {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestParseStatus(t *testing.T) {
	got, err := parseStatus([]byte("Name:\tserver\nVmPeak:\t  999 kB\nVmHWM:\t   300 kB\nVmRSS:\t   200 kB\nThreads:\t3\n"))
	if want := (Memory{RSS: 200 << 10, Peak: 300 << 10}); got != want || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "VmHWM: 1 kB\n", "VmHWM: 1 kB\nVmRSS: x kB\n"} {
		if got, err := parseStatus([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
