package programs

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// released builds a small program as a release has it, and returns it with an address of
// the release and its checksums.
func released(t *testing.T) (p Program, address, sums string) {
	t.Helper()
	module, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(module, "go.mod"), "module example.com/m\n\ngo 1.24\n")
	write(t, filepath.Join(module, "small", "main.go"), "package main\n\nfunc main() { println(\"it runs\") }\n")
	p = Program{
		Name: "kubernetes/v1.2.3/small", Package: "example.com/m/small", Version: "v1.2.3",
		Dir: module, Output: filepath.Join(t.TempDir(), "bin", "small"),
	}
	var out bytes.Buffer
	if err := release(t.Context(), &out, []Program{p}, dir, []string{runtime.GOOS + "/" + runtime.GOARCH, "linux/riscv64"}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	content, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(content), "\n") != 2 || !strings.Contains(string(content), "  small_v1.2.3_linux_riscv64\n") {
		t.Errorf("checksums:\n%s", content)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return p, server.URL + "/", string(content)
}

// A prebuilt program is fetched, runs, and is known the next time.
func TestFetchPrebuilt(t *testing.T) {
	p, address, sums := released(t)
	if err := p.fetchPrebuilt(t.Context(), address, sums); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), p.Output).CombinedOutput(); err != nil || string(out) != "it runs\n" {
		t.Errorf("%v, %s", err, out)
	}
	if !p.isPrebuilt(sums) {
		t.Error("it is not known afterwards")
	}
	write(t, p.Output, "something else")
	if p.isPrebuilt(sums) {
		t.Error("something else passes for it")
	}
}

// Whatever is wrong, nothing takes the program's place.
func TestFetchPrebuiltRefuses(t *testing.T) {
	p, address, sums := released(t)
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte("no gzip file")); err != nil {
			t.Error(err)
		}
	}))
	defer broken.Close()
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whole, err := http.Get(strings.TrimSuffix(address, "/") + r.URL.Path)
		if err != nil {
			t.Error(err)
			return
		}
		defer whole.Body.Close()
		if _, err := io.CopyN(w, whole.Body, whole.ContentLength/2); err != nil {
			t.Error(err)
		}
	}))
	defer half.Close()
	for name, tc := range map[string]struct {
		address, sums, want string
	}{
		"no checksum":      {address, "", "not prebuilt"},
		"another version":  {address, strings.ReplaceAll(sums, "v1.2.3", "v1.2.4"), "not prebuilt"},
		"another checksum": {address, strings.Repeat("0", 64) + sums[64:], "prebuilt.txt says 0000"},
		"not there":        {address + "elsewhere", sums, "404"},
		"no gzip":          {broken.URL, sums, "gzip"},
		"half":             {half.URL, sums, "unexpected EOF"},
		"no server":        {"http://127.0.0.1:1", sums, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.fetchPrebuilt(t.Context(), tc.address, tc.sums)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v does not say %q", err, tc.want)
			}
			left, err := filepath.Glob(filepath.Join(filepath.Dir(p.Output), "*"))
			if hidden, _ := filepath.Glob(filepath.Join(filepath.Dir(p.Output), ".fetch-*")); err != nil || len(left)+len(hidden) > 0 {
				t.Errorf("%v, left: %v %v", err, left, hidden)
			}
		})
	}
}

// Where nothing can be fetched everything is built, and the reason is said once.
func TestFetchAll(t *testing.T) {
	p, address, sums := released(t)
	unknown := Program{Name: "other", Version: "v1.0.0", Output: filepath.Join(t.TempDir(), "other")}
	for name, tc := range map[string]struct {
		address string
		missing int
		says    string
	}{
		"here":    {address, 1, "fetched bin/kubernetes/v1.2.3/small v1.2.3 in"},
		"off":     {"off", 3, ""},
		"nowhere": {"http://127.0.0.1:1", 3, "building instead"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func(before string) { prebuiltSums = before }(prebuiltSums)
			prebuiltSums = sums
			t.Setenv(PrebuiltVariable, tc.address)
			var out bytes.Buffer
			if missing := fetchAll(t.Context(), &out, []Program{unknown, p, p}); len(missing) != tc.missing {
				t.Errorf("%d are to be built, want %d", len(missing), tc.missing)
			}
			if !strings.Contains(out.String(), tc.says) || strings.Count(out.String(), "building instead") > 1 {
				t.Errorf("it says %q", &out)
			}
		})
	}
}

// What is committed names programs of this commit: a line for another version, or for
// another source of cert-manager, would never be used.
func TestPrebuiltSumsAreOfThisCommit(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	set, err := newKubernetesSet(t.Context(), root, "")
	if err != nil {
		t.Fatal(err)
	}
	all, err := pinnedPrograms(t.Context(), root, set)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, p := range all {
		for _, platform := range ReleasePlatforms {
			goos, goarch, _ := strings.Cut(platform, "/")
			known[p.prebuiltName(goos, goarch)] = true
		}
	}
	for line := range strings.Lines(prebuiltSums) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if len(sum) != 64 || !known[name] {
			t.Errorf("prebuilt.txt: %q is of no program of this commit; make testbed-release writes the file anew", line)
		}
	}
}
