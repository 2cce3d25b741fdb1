package programs

import (
	"path/filepath"
	"strings"
	"testing"
)

// gpu-binpacker is built with the same modules from its own go.mod and from that of the
// tests: they test what is shipped, and nothing is compiled a second time with other
// versions, which takes minutes.
func TestModulesAreTheSame(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	selected := func(dir string) map[string]string {
		out, err := goCommand(t.Context(), dir, nil, "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", Product(root).Package)
		if err != nil {
			t.Fatal(err)
		}
		versions := map[string]string{}
		for line := range strings.Lines(string(out)) {
			if path, version, _ := strings.Cut(strings.TrimSpace(line), " "); path != Product(root).Package && path != "" {
				versions[path] = version
			}
		}
		return versions
	}
	shipped, tested := selected(root), selected(filepath.Join(root, "test"))
	if len(shipped) < 20 {
		t.Fatalf("only %d modules", len(shipped))
	}
	for path, version := range tested {
		if shipped[path] != version {
			t.Errorf("%s: go.mod selects %q, test/go.mod %q; go get %s@%s where it is older", path, shipped[path], version, path, version)
		}
	}
}
