// Command pages draws the results of the packing benchmark in a file as the
// benchmark itself does, for the tests that open the page in a browser.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
)

func main() {
	results := flag.String("results", "", "packing.json to draw")
	output := flag.String("output", "", "folder for the copy of it and packing.html")
	flag.Parse()
	if err := run(*results, *output); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(1)
	}
}

// run leaves the file with the results as it is: a copy is drawn.
func run(results, output string) error {
	text, err := os.ReadFile(results)
	if err != nil {
		return fmt.Errorf("reading -results: %w", err)
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return fmt.Errorf("making -output: %w", err)
	}
	if err := os.WriteFile(filepath.Join(output, report.ResultsFile), text, 0o644); err != nil {
		return fmt.Errorf("copying the results: %w", err)
	}
	file, err := report.Open(output)
	if err != nil {
		return err
	}
	if len(file.Results) == 0 {
		return fmt.Errorf("no results in -results %s", results)
	}
	// Adding a result draws all of them; this one replaces itself.
	return file.Add(file.Results[0])
}
