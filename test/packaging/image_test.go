package packaging

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/gpu-binpacker/gpu-binpacker"

// No container engine runs in the tests, so that the Dockerfile is read instead.
// It must copy all that the binary is built from, and .dockerignore must let it.
func TestDockerfileCopiesTheSources(t *testing.T) {
	copied := copySources(t)
	for _, source := range copied {
		if _, err := os.Stat(filepath.Join(root, source)); err != nil {
			t.Errorf("COPY source: %v", err)
		}
		if ignored(t, source) {
			t.Errorf(".dockerignore excludes the COPY source %s", source)
		}
	}
	for _, source := range buildInputs(t) {
		if !slices.ContainsFunc(copied, func(c string) bool { return source == c || strings.HasPrefix(source, c+"/") }) {
			t.Errorf("the binary is built from %s, which no COPY brings in; sources are %v", source, copied)
		}
		if ignored(t, source) {
			t.Errorf("the binary is built from %s, which .dockerignore excludes", source)
		}
	}
}

func TestDockerignoreKeepsTheRestOut(t *testing.T) {
	for _, file := range []string{".git/HEAD", "bin/etcd", "test/go.mod", "README.md", "webhook/handler_test.go", "webhook/testdata/pod.yaml"} {
		if !ignored(t, file) {
			t.Errorf("%s would be sent to the builder", file)
		}
	}
}

func TestDockerfileBuildsOurBinary(t *testing.T) {
	dockerfile := read(t, "Dockerfile")
	// The same user as in the Deployment, and the version where cli looks for it.
	for _, want := range []string{
		"FROM gcr.io/distroless/static:nonroot\n",
		"USER 65532:65532\n",
		"CGO_ENABLED=0 ",
		"-X " + module + "/cli.version=$VERSION",
		"ENTRYPOINT [\"/gpu-binpacker\"]\nCMD [\"serve\"]\n",
	} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("the Dockerfile does not contain %q", want)
		}
	}
	// "FROM golang:1.27" must be able to build "go 1.27.0".
	builder := regexp.MustCompile(`FROM --platform=\$BUILDPLATFORM golang:(\d+\.\d+) `).FindStringSubmatch(dockerfile)
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	if builder == nil || language == nil || builder[1] != language[1] {
		t.Errorf("the Dockerfile's builder is %v, go.mod asks for %v", builder, language)
	}
}

// copySources returns what the Dockerfile copies from the repository, without
// trailing slashes.
func copySources(t *testing.T) []string {
	t.Helper()
	var sources []string
	for line := range strings.Lines(read(t, "Dockerfile")) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "COPY" || strings.HasPrefix(fields[1], "--from") {
			continue
		}
		for _, source := range fields[1 : len(fields)-1] {
			sources = append(sources, path.Clean(source))
		}
		// "COPY cli/ cli/": the package path must stay what it is.
		if target := path.Clean(fields[len(fields)-1]); target != "." && (len(fields) != 3 || target != path.Clean(fields[1])) {
			t.Errorf("%s moves files to another place", strings.TrimSpace(line))
		}
	}
	return sources
}

// buildInputs returns the repository's files that the binary is built from:
// sources and embedded files of its packages, and the module's two files.
func buildInputs(t *testing.T) []string {
	t.Helper()
	const format = `{{if and .Module .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}
{{end}}{{range .EmbedFiles}}{{$dir}}/{{.}}
{{end}}{{end}}`
	out := goCommand(t, root, "list", "-deps", "-f", format, ".")
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	inputs := []string{"go.mod", "go.sum"}
	for _, file := range strings.Fields(out) {
		relative, err := filepath.Rel(absolute, file)
		if err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, filepath.ToSlash(relative))
	}
	if !slices.Contains(inputs, "main.go") {
		t.Fatalf("main.go is not among %v", inputs)
	}
	return inputs
}

// ignored tells whether .dockerignore excludes a file. The last pattern that
// matches the file or a folder it is in decides. It knows the patterns that our
// file uses: names, "!", and "**/" in front.
func ignored(t *testing.T, file string) bool {
	t.Helper()
	excluded := false
	for line := range strings.Lines(read(t, ".dockerignore")) {
		pattern := strings.TrimSpace(line)
		if pattern == "" || strings.HasPrefix(pattern, "#") {
			continue
		}
		pattern, exception := strings.CutPrefix(pattern, "!")
		if matchesOrContains(t, pattern, file) {
			excluded = !exception
		}
	}
	return excluded
}

func matchesOrContains(t *testing.T, pattern, file string) bool {
	t.Helper()
	anywhere := strings.HasPrefix(pattern, "**/")
	pattern = strings.TrimPrefix(pattern, "**/")
	if strings.Contains(pattern, "**") {
		t.Fatalf(".dockerignore: this test does not know patterns like %q", pattern)
	}
	for ; file != "."; file = path.Dir(file) {
		candidate := file
		if anywhere {
			candidate = path.Base(file)
		}
		if matched, err := path.Match(pattern, candidate); err != nil {
			t.Fatal(err)
		} else if matched {
			return true
		}
	}
	return false
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
