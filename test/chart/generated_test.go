package chart

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	dir, err := Dir()
	if err != nil {
		t.Fatal(err)
	}
	files, err := Generated()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		got, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, files[file]) {
			t.Errorf("config/helm/gpu-binpacker/%s is not up to date: run `go run ./chart/cmd/generate` in test/", file)
		}
	}
}

func TestValuesTable(t *testing.T) {
	const given = `# About the file.

# One.
# More on it: a | b.
one: 1
group:
  # Two.
  two: [a, b]
# Three.
three:
  a: b
# Whole.
whole:
  # Part.
  part: ""
`
	const want = tableStart + `| value | default | meaning |
|---|---|---|
| ` + "`one` | `1`" + ` | One. More on it: a \| b. |
| ` + "`group.two` | `" + `["a","b"]` + "`" + ` | Two. |
| ` + "`three` | `" + `{"a":"b"}` + "`" + ` | Three. |
| ` + "`whole` |  | Whole. |" + `
| ` + "`whole.part` | `" + `""` + "`" + ` | Part. |
` + tableEnd
	got, err := valuesTable([]byte(given))
	if err != nil || got != want {
		t.Errorf("%v\n%s\nwant:\n%s", err, got, want)
	}
}

func TestEveryValueNeedsAComment(t *testing.T) {
	_, err := valuesTable([]byte("# One.\none: 1\ngroup:\n  # Two.\n  two: 2\n  three: 3\n"))
	if err == nil || !strings.Contains(err.Error(), "group.three") {
		t.Errorf("error %v, want one about group.three", err)
	}
}
