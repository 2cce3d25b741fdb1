package cli

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestDescribeBuild(t *testing.T) {
	const commit = "8d3e1c0f5a7b9d2e4f60718293a4b5c6d7e8f901"
	recorded := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{
			Main: debug.Module{Version: "v0.1.1-0.20261129120000-8d3e1c0f5a7b"},
			Settings: []debug.BuildSetting{
				{Key: "GOOS", Value: "plan9"}, // not a setting that is read
				{Key: "vcs.revision", Value: commit},
				{Key: "vcs.time", Value: "2026-11-29T12:00:00Z"},
				{Key: "vcs.modified", Value: modified},
			},
		}
	}
	for name, tc := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   build
	}{
		"release": {"v0.1.0", recorded("false"), build{
			Version: "v0.1.0", Commit: commit, CommitTime: "2026-11-29T12:00:00Z", TreeState: "clean",
		}},
		"go install, modified": {"", recorded("true"), build{
			Version: "v0.1.1-0.20261129120000-8d3e1c0f5a7b", Commit: commit, CommitTime: "2026-11-29T12:00:00Z", TreeState: "modified",
		}},
		"without git":         {"v0.1.0", &debug.BuildInfo{}, build{Version: "v0.1.0"}},
		"nothing is recorded": {"", nil, build{Version: "(devel)"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.want.GoVersion = runtime.Version()
			tc.want.Platform = runtime.GOOS + "/" + runtime.GOARCH
			if diff := cmp.Diff(tc.want, describeBuild(tc.linked, tc.info)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionText(t *testing.T) {
	full := build{
		Version: "v0.1.0", Commit: "8d3e1c0", CommitTime: "2026-11-29T12:00:00Z", TreeState: "clean",
		GoVersion: "go1.26.0", Platform: "linux/arm64",
	}
	for name, tc := range map[string]struct {
		build build
		want  string
	}{
		"all": {full, `version:   v0.1.0
commit:    8d3e1c0
date:      2026-11-29T12:00:00Z
tree:      clean
go:        go1.26.0
platform:  linux/arm64
`},
		"without git": {build{Version: "v0.1.0", GoVersion: "go1.26.0", Platform: "linux/arm64"}, `version:   v0.1.0
commit:    unknown
go:        go1.26.0
platform:  linux/arm64
`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tc.build.write(&out, ""); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestVersionFormats(t *testing.T) {
	for format, decode := range map[string]func([]byte, any) error{
		"json": json.Unmarshal,
		"yaml": func(data []byte, into any) error { return yaml.UnmarshalStrict(data, into) },
	} {
		t.Run(format, func(t *testing.T) {
			out, err := execute(t, "version", "-o", format)
			if err != nil {
				t.Fatal(err)
			}
			var got build
			if err := decode([]byte(out), &got); err != nil {
				t.Fatalf("%v in\n%s", err, out)
			}
			if diff := cmp.Diff(currentBuild(), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, err := execute(t, "version", "--output", "xml"); err == nil || !strings.Contains(err.Error(), "--output") || !strings.Contains(err.Error(), "json, yaml") {
		t.Errorf("error %v, want one that names the flag and its values", err)
	}
}
