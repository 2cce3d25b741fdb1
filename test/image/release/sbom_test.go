package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// makeSBOM makes the list for this test's own binary.
func makeSBOM(t *testing.T) []byte {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if _, err := release(t, "sbom", "-version", "v0.1.0", "-created", "1795953600", "-output", folder, "linux/amd64="+binary); err != nil {
		t.Fatal(err)
	}
	return read(t, filepath.Join(folder, "gpu-binpacker_v0.1.0_linux_amd64.cdx.json"))
}

// The list has every module that the binary itself names, with its checksum, and the
// standard library. It is the same when it is made again.
func TestSBOM(t *testing.T) {
	text := makeSBOM(t)
	if !bytes.Equal(text, makeSBOM(t)) {
		t.Error("it differs when it is made again")
	}
	var bom cyclonedx.BOM
	if err := json.Unmarshal(text, &bom); err != nil {
		t.Fatal(err)
	}
	if bom.BOMFormat != cyclonedx.BOMFormat || bom.SpecVersion != cyclonedx.SpecVersion1_6 || bom.Metadata.Timestamp != "2026-11-29T12:00:00Z" {
		t.Errorf("format %s, version %s, time %s", bom.BOMFormat, bom.SpecVersion, bom.Metadata.Timestamp)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || len(info.Deps) == 0 {
		t.Fatal("this binary does not know its modules")
	}
	if got := len(*bom.Components); got != len(info.Deps)+1 {
		t.Errorf("%d components, want the standard library and %d modules", got, len(info.Deps))
	}
	std := (*bom.Components)[0]
	if std.PackageURL != "pkg:golang/std@"+strings.TrimPrefix(runtime.Version(), "go") {
		t.Errorf("standard library %s", std.PackageURL)
	}
	i := slices.IndexFunc(*bom.Components, func(c cyclonedx.Component) bool { return c.Name == "sigs.k8s.io/yaml" })
	if i < 0 {
		t.Fatal("a module that is linked in is missing")
	}
	yaml := (*bom.Components)[i]
	if !strings.HasPrefix(yaml.PackageURL, "pkg:golang/sigs.k8s.io/yaml@v1.") || yaml.Hashes == nil || len((*yaml.Hashes)[0].Value) != 64 {
		t.Errorf("component %+v", yaml)
	}
}

func TestSBOMRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no binary":          {"-version", "v0.1.0", "linux/amd64=" + text},
		"no argument":        {"-version", "v0.1.0"},
		"half an argument":   {"-version", "v0.1.0", "linux/amd64"},
		"no version":         {"linux/amd64=" + text},
		"an unknown version": {"-version", "latest", "linux/amd64=" + text},
	} {
		if _, err := release(t, append([]string{"sbom", "-output", t.TempDir()}, args...)...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
