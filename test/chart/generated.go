package chart

import (
	"os"
	"path/filepath"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// copies are files that the chart needs and that other installations need as well.
// A chart can only read what is below its own folder. Path in the chart -> path in
// the repository.
var copies = map[string]string{
	"files/dashboard.json":      "config/grafana/dashboard.json",
	"files/prometheusrule.yaml": "config/prometheus/prometheusrule.yaml",
}

// Generated returns what the generated files of the chart must contain, path in the
// chart -> content.
func Generated() (map[string][]byte, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for file, source := range copies {
		if files[file], err = os.ReadFile(filepath.Join(root, source)); err != nil {
			return nil, err
		}
	}
	values, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		return nil, err
	}
	files["README.md"], err = withTable(readme, values)
	return files, err
}
