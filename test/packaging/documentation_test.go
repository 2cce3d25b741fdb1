package packaging

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// Documentation outlives code unless something checks it.

func documents(t *testing.T) []string {
	t.Helper()
	documents, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for i, document := range documents {
		documents[i] = "docs/" + filepath.Base(document)
	}
	return append(documents, "README.md")
}

var (
	links     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	paths     = regexp.MustCompile("`((?:cli|config|docs|scoring|test|webhook)/[A-Za-z0-9._/*-]*)`|-[fk] (config/[A-Za-z0-9._/-]+)")
	targets   = regexp.MustCompile("(?m)(?:^|`)make ([a-z0-9-]+)")
	headings  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notInSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
)

func TestDocumentedLinksExist(t *testing.T) {
	for _, document := range documents(t) {
		for _, match := range links.FindAllStringSubmatch(read(t, document), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(match[1], "#")
			target := document
			if file != "" {
				target = filepath.Join(filepath.Dir(document), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s: %v", document, match[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors(t, target), anchor) {
				t.Errorf("%s links to %s, but %s has no such heading", document, match[1], target)
			}
		}
	}
}

// anchors are what GitHub makes of a document's headings.
func anchors(t *testing.T, document string) []string {
	t.Helper()
	var anchors []string
	for _, heading := range headings.FindAllStringSubmatch(read(t, document), -1) {
		slug := notInSlug.ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors = append(anchors, strings.ReplaceAll(slug, " ", "-"))
	}
	return anchors
}

func TestDocumentedPathsExist(t *testing.T) {
	found := 0
	for _, document := range documents(t) {
		for _, match := range paths.FindAllStringSubmatch(read(t, document), -1) {
			path := match[1] + match[2]
			found++
			if files, err := filepath.Glob(filepath.Join(root, path)); err != nil || len(files) == 0 {
				t.Errorf("%s names %s, which does not exist", document, path)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d paths in the documentation, so the pattern misses them", found)
	}
}

func TestDocumentedTargetsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, document := range append(documents(t), ".ci/run", ".github/workflows/ci.yaml", ".github/workflows/release.yaml") {
		for _, match := range targets.FindAllStringSubmatch(read(t, document), -1) {
			if !strings.Contains(makefile, "\n"+match[1]+":") {
				t.Errorf("%s says make %s, but there is no such target", document, match[1])
			}
		}
	}
}

var settingRow = regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| (.*?) \\|")

// The table of docs/configuration.md lists every setting, and of plain values the default.
func TestEverySettingIsDocumented(t *testing.T) {
	documented := map[string]string{}
	for _, row := range settingRow.FindAllStringSubmatch(read(t, "docs/configuration.md"), -1) {
		documented[row[1]] = strings.Trim(row[2], "`")
	}
	want := settings(t)
	for _, setting := range slices.Sorted(maps.Keys(want)) {
		got, ok := documented[setting]
		if !ok {
			t.Errorf("docs/configuration.md does not list %s", setting)
		} else if want[setting] != "" && got != want[setting] {
			t.Errorf("docs/configuration.md says the default of %s is %s, it is %s", setting, got, want[setting])
		}
	}
	for _, setting := range slices.Sorted(maps.Keys(documented)) {
		if _, ok := want[setting]; !ok {
			t.Errorf("docs/configuration.md lists %s, which does not exist", setting)
		}
	}
}

// settings maps the path of each setting to its default, "" for lists.
func settings(t *testing.T) map[string]string {
	t.Helper()
	encoded, err := json.Marshal(config.Default())
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	delete(decoded, "apiVersion")
	delete(decoded, "kind")
	// Left out of the encoding, since they have no default.
	all := map[string]string{"nodes.excludeSelector": "none", "scheduler.kubernetesVersion": "none", "scheduler.scoringStrategy.requestedToCapacityRatio.shape": "none"}
	var walk func(prefix string, value any)
	walk = func(prefix string, value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, child := range value {
				walk(strings.TrimPrefix(prefix+"."+key, "."), child)
			}
		case []any:
			all[prefix] = ""
		default:
			all[prefix] = fmt.Sprint(value)
		}
	}
	walk("", decoded)
	return all
}

// What doc.go says about a package's files must stay true.
func TestPackageFilesExist(t *testing.T) {
	listed := regexp.MustCompile(`(?m)^//   - ([a-z0-9_., ]+\.go)`)
	docs := 0
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != "doc.go" {
			return err
		}
		docs++
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		named := map[string]bool{"doc.go": true}
		for _, match := range listed.FindAllStringSubmatch(string(content), -1) {
			for _, file := range strings.Split(match[1], ",") {
				named[strings.TrimSpace(file)] = true
			}
		}
		checkNamed(t, filepath.Dir(path), named)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if docs < 3 {
		t.Errorf("found %d files doc.go", docs)
	}
}

// checkNamed checks that a package's doc.go names files that exist; in the
// product, where it is the reader's way in, it must name all of them.
func checkNamed(t *testing.T, dir string, named map[string]bool) {
	t.Helper()
	for file := range named {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Errorf("doc.go in %s: %v", dir, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	product := !strings.Contains(filepath.ToSlash(dir)+"/", "/test/")
	for _, file := range files {
		if name := filepath.Base(file); product && !strings.HasSuffix(name, "_test.go") && !named[name] {
			t.Errorf("doc.go in %s does not name %s", dir, name)
		}
	}
}
