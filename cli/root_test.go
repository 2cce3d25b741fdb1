package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// execute runs a command line and returns what it prints.
func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "configuration.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMatchConditions(t *testing.T) {
	path := writeFile(t, "apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\nresources: {names: [example.com/gpu], prefixes: []}\n")
	out, err := execute(t, "match-conditions", "--config", path)
	if err != nil {
		t.Fatal(err)
	}
	var webhook admissionregistrationv1.MutatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(out), &webhook); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if webhook.Name != config.WebhookConfigurationName || webhook.Kind != "MutatingWebhookConfiguration" {
		t.Errorf("a patch for %s %s", webhook.Kind, webhook.Name)
	}
	if len(webhook.Webhooks) != 1 || webhook.Webhooks[0].Name != config.WebhookName || len(webhook.Webhooks[0].MatchConditions) != 1 {
		t.Fatalf("webhooks %+v", webhook.Webhooks)
	}
	expression := webhook.Webhooks[0].MatchConditions[0].Expression
	if !strings.Contains(expression, `"example.com/gpu"`) || strings.Contains(expression, "nvidia") {
		t.Errorf("expression %s", expression)
	}
}

// What is wrong with the configuration is said at once, all of it, by field.
func TestServeRefusesBadConfiguration(t *testing.T) {
	path := writeFile(t, "apiVersion: "+config.APIVersion+"\nkind: "+config.Kind+"\nranking: {strategy: Best}\nserver: {webhookPort: -1}\n")
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"file":           {[]string{"serve", "--config", path}, []string{"ranking.strategy", "BestFit", "server.webhookPort"}},
		"flag":           {[]string{"serve", "--mode", "Fast"}, []string{"mode", "DryRun"}},
		"missing file":   {[]string{"serve", "--config", path + ".missing"}, []string{"no such file"}},
		"no kubeconfig":  {[]string{"serve", "--kubeconfig", path + ".missing"}, []string{"--kubeconfig"}},
		"unknown flag":   {[]string{"serve", "--strategy", "x"}, []string{"--strategy"}},
		"stray argument": {[]string{"serve", "now"}, []string{"now"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, tc.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestVersion(t *testing.T) {
	out, err := execute(t, "version")
	if err != nil || strings.TrimSpace(out) == "" {
		t.Errorf("%q, %v", out, err)
	}
}
