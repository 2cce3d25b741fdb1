package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

func TestPageIsUpToDate(t *testing.T) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	want, err := generate(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, document))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("run make generate; %s (-want +got):\n%s", document, diff)
	}
	if rows := strings.Count(want, "\n| `"); rows < 40 {
		t.Errorf("%d settings: some are missing", rows)
	}
}

func TestMeaning(t *testing.T) {
	names := map[string]string{"Window": "window", "Failures": "failures", "Default": "default"}
	got := meaning("Failures is how many\nwithin Window, a|b. Default 3. Failures again.", "Failures", names)
	if want := "`failures` is how many within `window`, a\\|b. Default 3. Failures again."; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
