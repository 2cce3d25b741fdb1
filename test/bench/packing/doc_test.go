package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsNameEveryFile checks the lists of files in the doc.go files of this
// benchmark: all files of the package, and none that is gone.
func TestDocsNameEveryFile(t *testing.T) {
	docs, err := filepath.Glob("../*/doc.go")
	if err != nil || len(docs) == 0 {
		t.Fatal(docs, err)
	}
	for _, doc := range docs {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(doc)
		named := map[string]bool{"doc.go": true}
		for line := range strings.Lines(string(text)) {
			list, isItem := strings.CutPrefix(line, "//   - ")
			if !isItem {
				continue
			}
			list, _, _ = strings.Cut(list, ":")
			for name := range strings.SplitSeq(list, ", ") {
				named[name] = true
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Errorf("%s names %s: %v", doc, name, err)
				}
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if name := filepath.Base(file); !strings.HasSuffix(name, "_test.go") && !named[name] {
				t.Errorf("%s does not name %s", doc, name)
			}
		}
	}
}
