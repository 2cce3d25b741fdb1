package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigOf returns a kubeconfig file for an API server.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	const name = "x"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: url}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	kubeconfig.CurrentContext = name
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// An API server that knows its version and refuses all else: nothing can be looked
// at, and that is no failure, but warnings fail if they are to.
func TestCheckExitCode(t *testing.T) {
	version := "v1.37.0"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version":
			_, _ = w.Write([]byte(`{"gitVersion":"` + version + `"}`))
		case strings.HasPrefix(r.URL.Path, "/apis/admissionregistration.k8s.io/v1") && r.URL.Path[len("/apis/admissionregistration.k8s.io/v1"):] == "":
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"admissionregistration.k8s.io/v1","resources":[{"name":"mutatingwebhookconfigurations"}]}`))
		default:
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"forbidden"}`))
		}
	}))
	defer server.Close()
	path := kubeconfigOf(t, server.URL)
	keep := filepath.Join(t.TempDir(), "configuration.yaml")
	content := "apiVersion: gpu-binpacker.io/v1alpha1\nkind: Configuration\nspreading: {default: Keep}\n"
	if err := os.WriteFile(keep, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		version string
		args    []string
		fails   string
	}{
		"skipped":             {"v1.37.0", nil, ""},
		"warning":             {"v1.37.0", []string{"--config", keep}, ""},
		"warning is too much": {"v1.37.0", []string{"--config", keep, "--fail-on", "warning"}, "1 of "},
		"failure":             {"v1.20.0", nil, "1 of "},
	} {
		t.Run(name, func(t *testing.T) {
			version = tc.version
			out, err := execute(t, append([]string{"check", "--kubeconfig", path}, tc.args...)...)
			if tc.fails == "" && err != nil || tc.fails != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.fails)) {
				t.Errorf("%v\n%s", err, out)
			}
			if !strings.Contains(out, "GB301") || !strings.Contains(out, "needs permission to list nodes") {
				t.Errorf("output:\n%s", out)
			}
		})
	}
}

func TestCheckRefusesBadFlags(t *testing.T) {
	for name, tc := range map[string]struct{ args, want []string }{
		"output":        {[]string{"-o", "xml"}, []string{"--output", "table", "json"}},
		"fail-on":       {[]string{"--fail-on", "ok"}, []string{"--fail-on", "failure", "warning"}},
		"wait":          {[]string{"--wait", "-1s"}, []string{"--wait", "2m"}},
		"no kubeconfig": {[]string{"--kubeconfig", filepath.Join(t.TempDir(), "missing")}, []string{"--kubeconfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := execute(t, append([]string{"check"}, tc.args...)...)
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
