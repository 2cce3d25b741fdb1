package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// header is how every configuration file begins.
const header = "apiVersion: gpu-binpacker.io/v1alpha1\nkind: Configuration\n"

// change is the default configuration with a change.
func change(f func(*config.Configuration)) config.Configuration {
	cfg := config.Default()
	f(&cfg)
	return cfg
}

func TestDefaultIsValid(t *testing.T) {
	if errs := config.Validate(config.Default()); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	// Two callers share nothing.
	a, b := config.Default(), config.Default()
	a.Resources.Names[0], a.SchedulerNames[0], a.Nodes.RemovalTaints[0] = "x", "x", "x"
	a.Scheduler.ScoringStrategy.Resources[0].Name, a.Resources.Prefixes[0] = "x", "x"
	if diff := cmp.Diff(config.Default(), b); diff != "" {
		t.Errorf("a change of one default shows in another:\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		file string
		want config.Configuration
	}{
		"header only":              {header, config.Default()},
		"as JSON":                  {`{"apiVersion":"gpu-binpacker.io/v1alpha1","kind":"Configuration","mode":"DryRun"}`, change(func(c *config.Configuration) { c.Mode = config.ModeDryRun })},
		"document marks, comments": {"# about\n---\n" + header + "---\n# nothing more\n", config.Default()},
		"one field of a struct":    {header + "server: {decisionTimeout: 20ms}", change(func(c *config.Configuration) { c.Server.DecisionTimeout.Duration = 20 * time.Millisecond })},
		"one field, deeper":        {header + "scheduler: {pluginWeights: {imageLocality: 0}}", change(func(c *config.Configuration) { c.Scheduler.PluginWeights.ImageLocality = 0 })},
		"null leaves a default":    {header + "mode: null\nserver: null\nscheduler: {pluginWeights: null}", config.Default()},
		"a list replaces":          {header + "schedulerNames: [a]", change(func(c *config.Configuration) { c.SchedulerNames = []string{"a"} })},
		"a longer list":            {header + "schedulerNames: [a, b, c]", change(func(c *config.Configuration) { c.SchedulerNames = []string{"a", "b", "c"} })},
		"an empty list":            {header + "resources: {prefixes: []}", change(func(c *config.Configuration) { c.Resources.Prefixes = []string{} })},
		"a null list":              {header + "nodes: {removalTaints: null}", change(func(c *config.Configuration) { c.Nodes.RemovalTaints = nil })},
		"an element stands for itself": {
			// The default element at its place has weight 1; it must not show through.
			header + "scheduler: {scoringStrategy: {resources: [{name: nvidia.com/gpu}]}}",
			change(func(c *config.Configuration) {
				c.Scheduler.ScoringStrategy.Resources = []config.ResourceWeight{{Name: "nvidia.com/gpu"}}
			}),
		},
		"a selector": {header + "nodes: {excludeSelector: {matchLabels: {a: b}}}", change(func(c *config.Configuration) {
			c.Nodes.ExcludeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		})},
		// Left to Validate to refuse, with the field's path.
		"empty": {"", change(func(c *config.Configuration) { c.TypeMeta = metav1.TypeMeta{} })},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := config.Parse([]byte(tc.file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	tests := map[string]struct {
		file string
		want string // in the error
	}{
		"unknown field":          {header + "moed: DryRun", `"moed"`},
		"unknown field, deeper":  {header + "server: {port: 1}", `"server.port"`},
		"unknown field, in list": {header + "scheduler: {scoringStrategy: {resources: [{name: cpu, wieght: 2}]}}", `"scheduler.scoringStrategy.resources[0].wieght"`},
		"two unknown fields":     {header + "a: 1\nb: 1", `"b"`},
		"field of another case":  {header + "Mode: DryRun", `"Mode"`},
		"repeated field":         {header + "mode: Steer\nmode: DryRun", `"mode"`},
		"repeated, deeper":       {header + "log:\n  level: Info\n  level: Debug", `"level"`},
		"two documents":          {header + "---\n" + header, "more than one"},
		"list":                   {"- a", "array"},
		"text":                   {"text", "string"},
		"no YAML":                {"a: b: c", "yaml"},
		"tab":                    {"\tmode: Enforce", "yaml"},
		"text for a number":      {header + "weights: {maxTerms: many}", "maxTerms"},
		"number for a text":      {header + "mode: 1", "mode"},
		"number for a duration":  {header + "inFlight: {reservationTTL: 5}", "number"},
		"text for a list":        {header + "schedulerNames: a", "schedulerNames"},
		"fraction":               {header + "server: {webhookPort: 1.5}", "webhookPort"},
		"overflow":               {header + "weights: {margin: 99999999999999999999}", "margin"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.Parse([]byte(tc.file))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one about %s", err, tc.want)
			}
		})
	}
}

// Defaults, then the file, then the flags that were given.
func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configuration.yaml")
	if err := os.WriteFile(path, []byte(header+"mode: DryRun\nlog: {level: Debug}\nserver: {webhookPort: 1111, certDir: /from/file}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile := change(func(c *config.Configuration) {
		c.Mode, c.Log.Level, c.Server.WebhookPort, c.Server.CertDir = config.ModeDryRun, config.LogDebug, 1111, "/from/file"
	})
	tests := map[string]struct {
		path string
		args []string
		want config.Configuration
	}{
		"nothing":            {want: config.Default()},
		"file":               {path: path, want: fromFile},
		"flags":              {args: []string{"--mode=DryRun"}, want: change(func(c *config.Configuration) { c.Mode = config.ModeDryRun })},
		"flags win":          {path: path, args: []string{"--webhook-port=2222"}, want: with(fromFile, func(c *config.Configuration) { c.Server.WebhookPort = 2222 })},
		"a default restated": {path: path, args: []string{"--mode=Enforce"}, want: with(fromFile, func(c *config.Configuration) { c.Mode = config.ModeEnforce })},
		"other flags":        {path: path, args: []string{"--config=x"}, want: fromFile},
		"every flag": {
			args: []string{"--mode=DryRun", "--webhook-port=1", "--webhook-cert-dir=/c", "--webhook-client-ca-file=/a", "--metrics-bind-address=0", "--metrics-insecure",
				"--health-probe-bind-address=:1", "--log-level=Debug", "--log-format=Console"},
			want: change(func(c *config.Configuration) {
				c.Mode, c.Log = config.ModeDryRun, config.Log{Level: config.LogDebug, Format: config.LogConsole}
				c.Server.ClientCAFile = "/a"
				c.Server.WebhookPort, c.Server.CertDir, c.Server.MetricsAddress, c.Server.MetricsInsecure, c.Server.HealthAddress = 1, "/c", "0", true, ":1"
			}),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load(tc.path, flags(t, tc.args...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
		})
	}
	if got, err := config.Load(path, nil); err != nil || !cmp.Equal(got, fromFile) {
		t.Errorf("without flags: %+v, %v", got, err)
	}
}

func with(cfg config.Configuration, f func(*config.Configuration)) config.Configuration {
	f(&cfg)
	return cfg
}

// flags are those of a command, parsed.
func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	cfg := config.Default()
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.BindFlags(set, &cfg)
	set.String("config", "", "a flag of the command itself")
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return set
}

func TestLoadErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configuration.yaml")
	if err := os.WriteFile(path, []byte("kind: Deployment\nmode: Maybe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		path string
		args []string
		want []string
	}{
		"no such file":     {path: path + ".missing", want: []string{"no such file"}},
		"a folder":         {path: filepath.Dir(path), want: []string{"configuration file"}},
		"everything wrong": {path: path, args: []string{"--webhook-port=0"}, want: []string{"apiVersion", "kind", "mode", "server.webhookPort"}},
		"wrong flag":       {args: []string{"--log-level=Loud"}, want: []string{"log.level"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := config.Load(tc.path, flags(t, tc.args...))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want it to name %s", err, want)
				}
			}
			if diff := cmp.Diff(config.Configuration{}, got); diff != "" {
				t.Errorf("a configuration in spite of the error:\n%s", diff)
			}
		})
	}
}
