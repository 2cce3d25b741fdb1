package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// reportServer answers like an API server with the objects of a state file and
// nothing installed, and returns the path of a kubeconfig for it. It only takes
// reads.
func reportServer(t *testing.T) string {
	t.Helper()
	s, err := state.Load(reportState(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]any{
		"/version":           apiversion.Info{GitVersion: "v1.37.2"},
		"/api/v1/namespaces": corev1.NamespaceList{},
		"/api/v1/nodes":      corev1.NodeList{Items: s.Nodes},
		"/api/v1/pods":       corev1.PodList{Items: s.Pods},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s: the command may only read", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status:   metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: c, cluster: {server: '" + server.URL + "'}}]\n" +
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Before anything is installed, the report goes by the default configuration.
func TestReportOfACluster(t *testing.T) {
	page := filepath.Join(t.TempDir(), "report.html")
	out, err := execute(t, "report", "--kubeconfig", reportServer(t), "--html", page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"read 2 nodes", "not installed", "on 2 of 2 nodes", "they are on 1", "Kubernetes v1.37.2"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if content, err := os.ReadFile(page); err != nil || !strings.Contains(string(content), "acme-2: 2 of 8 used") {
		t.Errorf("the page: %v, without the nodes", err)
	}
}
