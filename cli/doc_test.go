package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// doc.go lists the files of this package in reading order: all of them, and none
// that is gone.
func TestDocNamesEveryFile(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{"doc.go": true}
	for _, match := range regexp.MustCompile(`(?m)^//   - (\S+\.go): `).FindAllStringSubmatch(string(doc), -1) {
		named[match[1]] = true
		if _, err := os.Stat(match[1]); err != nil {
			t.Errorf("doc.go names %s: %v", match[1], err)
		}
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") && !named[file] {
			t.Errorf("doc.go does not name %s", file)
		}
	}
}
