package faults

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// full is the form of make test-faults: all rows, at their full size.
var full = flag.Bool("full", false, "all faults at their full size, not the short form")

// cluster is shared by the rows, one after another.
var cluster *bed

// report is what the rows have shown.
var report reportFile

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		code = 1
	}
	os.Exit(code)
}

// run starts the cluster, runs the tests and saves the report.
func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute+*soak)
	defer cancel()
	if cluster, err = startBed(ctx); err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			cluster.KeepDir()
		}
		err = errors.Join(err, cluster.stop())
	}()
	code = m.Run()
	return code, report.save(os.Stdout)
}
