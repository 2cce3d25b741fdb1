// The command generate writes the generated files of the Helm chart: the table of
// values in its README, and copies of files that lie outside of its folder.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpu-binpacker/gpu-binpacker/test/chart"
)

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate() error {
	dir, err := chart.Dir()
	if err != nil {
		return err
	}
	files, err := chart.Generated()
	if err != nil {
		return err
	}
	for file, content := range files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
