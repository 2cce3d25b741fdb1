package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
	"github.com/gpu-binpacker/gpu-binpacker/test/reports"
)

// reportName is the report's file in bin/reports.
const reportName = "versions.json"

func main() {
	versions := flag.String("versions", "", "Kubernetes versions separated by spaces, for example '1.34.4 1.36.3'; default: all that are tested")
	suites := flag.String("suites", strings.Join(fullSuites, " "), "suites separated by spaces; the table in docs/compatibility.md is written only with the default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, strings.Fields(*versions), strings.Fields(*suites))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

// run tests all versions and writes the results. The error names everything that
// is not as it must be.
func run(ctx context.Context, out io.Writer, versions, suites []string) error {
	versions, err := selectVersions(ctx, versions)
	if err != nil {
		return err
	}
	if err := checkSuites(suites); err != nil {
		return err
	}
	root, err := programs.RepositoryRoot()
	if err != nil {
		return err
	}
	var problems []error
	for i, version := range versions {
		r := &runner{
			version: version, root: root, out: out,
			name: fmt.Sprintf("[%d/%d] Kubernetes %s", i+1, len(versions), version),
		}
		result := r.run(ctx, suites)
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("testing Kubernetes %s: %w", version, err)
		}
		for _, problem := range result.Problems {
			problems = append(problems, fmt.Errorf("kubernetes %s: %s", version, problem))
		}
		// After each version, so that an interruption loses one at most.
		if err := save(root, result, slices.Equal(suites, fullSuites)); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: done in %s, %d problems\n", r.name, time.Duration(result.Seconds*float64(time.Second)).Round(time.Second), len(result.Problems))
	}
	return errors.Join(problems...)
}

// selectVersions checks the versions of the command line, or returns the default.
// They come back without v.
func selectVersions(ctx context.Context, versions []string) ([]string, error) {
	if len(versions) == 0 {
		return programs.TestedKubernetes(ctx)
	}
	var parsed []string
	for _, text := range versions {
		version, err := programs.ParseKubernetesVersion(text)
		if err != nil {
			return nil, fmt.Errorf("-versions: %w", err)
		}
		parsed = append(parsed, strings.TrimPrefix(version, "v"))
	}
	return parsed, nil
}

// save writes the result into the report and, if it is a full one, into the table.
func save(root string, result Result, full bool) error {
	path := filepath.Join(root, "bin", "reports", reportName)
	all, err := readResults(path)
	if err != nil {
		return err
	}
	if err := reports.Write(path, merge(all, result)); err != nil {
		return err
	}
	if !full {
		return nil
	}
	return updateDocument(filepath.Join(root, "docs", "compatibility.md"), result)
}
