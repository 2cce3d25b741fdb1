package programs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is built from the same module is built together, with everybody's linker flags.
func TestBatches(t *testing.T) {
	all := batches([]Program{
		{Name: "a", Dir: "one", LinkerFlags: "-X main.a=1"},
		{Name: "b", Dir: "two"},
		{Name: "c", Dir: "one"},
		{Name: "d", Dir: "one", LinkerFlags: "-X main.d=1"},
		{Name: "e", Dir: "one", Environment: []string{"GOTOOLCHAIN=go1.27.0"}},
		{Name: "f", Dir: "one", LinkerFlags: "-X main.a=1"},
	})
	var got []string
	for _, b := range all {
		got = append(got, b.names()+" | "+b.linkerFlags())
	}
	want := "bin/a, bin/c, bin/d, bin/f | -s -w -X main.a=1 -X main.d=1; bin/b | -s -w; bin/e | -s -w"
	if strings.Join(got, "; ") != want {
		t.Errorf("batches %s, want %s", strings.Join(got, "; "), want)
	}
}

func TestExecutable(t *testing.T) {
	for path, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kube-apiserver": "kube-apiserver",
		"go.etcd.io/etcd/server/v3":            "server",
		"example.com/v":                        "v",
		"example.com/v2x":                      "v2x",
	} {
		if got := executable(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// Two programs of one module are built by one command, say how far they are, and are
// used again.
func TestEnsureAll(t *testing.T) {
	module, bin := t.TempDir(), t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module example.com/m\n\ngo 1.24\n")
	const program = "package main\n\nvar value string\n\nfunc main() { println(value) }\n"
	write(t, filepath.Join(module, "first", "main.go"), program)
	write(t, filepath.Join(module, "second", "v2", "main.go"), program)
	list := func() ([]Program, error) {
		return []Program{
			{Name: "first", Package: "example.com/m/first", Dir: module, Output: filepath.Join(bin, "first"), LinkerFlags: "-X main.value=1"},
			{Name: "second", Package: "example.com/m/second/v2", Dir: module, Output: filepath.Join(bin, "renamed")},
		}, nil
	}
	var out bytes.Buffer
	if err := ensureAll(t.Context(), &out, bin, list); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"missing: bin/first (first time only)", "built bin/first, bin/second in"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	out.Reset()
	if err := ensureAll(t.Context(), &out, bin, list); err != nil || out.String() != "reusing bin/first\nreusing bin/second\n" {
		t.Errorf("%v, the second time:\n%s", err, &out)
	}
	if left, err := filepath.Glob(filepath.Join(bin, ".build-*")); err != nil || len(left) > 0 {
		t.Errorf("%v, left behind: %v", err, left)
	}
}

// What the compiler says is in the error, and nothing is left in the place of the
// program.
func TestBuildFails(t *testing.T) {
	module, bin := t.TempDir(), t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module example.com/m\n\ngo 1.24\n")
	write(t, filepath.Join(module, "broken", "main.go"), "package main\n\nfunc main() { missing() }\n")
	p := Program{Name: "broken", Package: "example.com/m/broken", Dir: module, Output: filepath.Join(bin, "broken")}
	err := p.Build(t.Context(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "undefined: missing") {
		t.Errorf("error %v does not say what is wrong", err)
	}
	if _, err := os.Stat(p.Output); err == nil {
		t.Error("there is a program")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What a go command says is counted, in whatever pieces it comes, and the rest is kept.
func TestProgress(t *testing.T) {
	p := &progress{start: time.Now()}
	write := func(text string) {
		if n, err := p.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	p.begin("finding what they need")
	write("go: downloading k8s.io/api v0.37.2\ngo: down")
	write("loading k8s.io/utils v0.0.0\n")
	if got := p.line(); !strings.HasPrefix(got, "  finding what they need, 2 modules downloaded, 0s so far") {
		t.Errorf("line %q", got)
	}
	p.beginCompiling(300)
	write("internal/abi\nk8s.io/api/core/v1\n# k8s.io/api/core/v1\nx.go:1:2: undefined: y\n")
	if got := p.line(); !strings.HasPrefix(got, "  compiling, 2 of at most 300 packages, 0s so far") {
		t.Errorf("line %q", got)
	}
	write("half")
	if got, want := p.text(), "# k8s.io/api/core/v1\nx.go:1:2: undefined: y\nhalf"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
}

// A line comes at every interval, and none after stop.
func TestProgressLines(t *testing.T) {
	lines := make(chan string, 100)
	p := startProgress(lineWriter(lines), time.Millisecond)
	p.begin("linking")
	for line := range lines {
		if strings.Contains(line, "linking") {
			break
		}
	}
	p.stop()
	for len(lines) > 0 {
		<-lines
	}
	if _, err := p.Write([]byte("x\n")); err != nil || len(lines) > 0 {
		t.Errorf("%v, a line after the end", err)
	}
}

type lineWriter chan string

func (w lineWriter) Write(line []byte) (int, error) {
	select {
	case w <- string(line):
	default:
	}
	return len(line), nil
}
