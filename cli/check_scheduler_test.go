package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gpu-binpacker/gpu-binpacker/cli/schedulerconfig"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// schedulerFiles are files that hold a KubeSchedulerConfiguration.
func schedulerFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "scheduler", "*.yaml"))
	if err != nil || len(files) < 9 {
		t.Fatalf("%d files in testdata/scheduler: %v", len(files), err)
	}
	return files
}

func TestCheckSchedulerConfig(t *testing.T) {
	for _, file := range schedulerFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			out, err := execute(t, "check", "--scheduler-config", file)
			if err != nil {
				t.Fatal(err)
			}
			within(t, out)
			golden(t, filepath.Join("scheduler", strings.TrimSuffix(filepath.Base(file), ".yaml")+".golden"), out)
		})
	}
}

// What is printed is a part of a configuration, and pasted it describes the profile.
func TestCheckSchedulerConfigCanBePasted(t *testing.T) {
	for _, file := range schedulerFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := schedulerconfig.Translate(data, config.Default().Resources)
			if err != nil {
				t.Fatal(err)
			}
			out, err := execute(t, "check", "--scheduler-config", file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := config.Load(writeFile(t, "apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\n"+out), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Scheduler, got.Scheduler); diff != "" {
				t.Errorf("the section read again (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.SchedulerNames, got.SchedulerNames); diff != "" {
				t.Errorf("schedulerNames (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckSchedulerConfigFromStandardInput(t *testing.T) {
	const file = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\npercentageOfNodesToScore: 20\n"
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetIn(strings.NewReader(file))
	root.SetArgs([]string{"check", "--scheduler-config", "-"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"standard input", "percentageOfNodesToScore: 20"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestCheckSchedulerConfigErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no such file":        {[]string{"missing.yaml"}, "--scheduler-config: open missing.yaml"},
		"another kind":        {[]string{filepath.Join("testdata", "explain", "job.yaml")}, "job.yaml: no KubeSchedulerConfiguration, only"},
		"with other flags":    {[]string{"-", "--pre"}, "none of the others can be"},
		"with a wrong config": {[]string{"-", "--config", "missing.yaml"}, "missing.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, append([]string{"check", "--scheduler-config"}, tc.args...)...)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
