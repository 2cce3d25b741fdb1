package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// serveRegistry serves a registry that lets in one user only.
func serveRegistry(t *testing.T) (host string) {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "ci" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// logIn writes what docker login would.
func logIn(t *testing.T, host, password string) {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("ci:"+password)))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DOCKER_CONFIG", dir)
}

func TestPush(t *testing.T) {
	host := serveRegistry(t)
	archive, digest := buildArchive(t, small(t))
	reference := host + "/team/gpu-binpacker:v0.0.1"

	logIn(t, host, "wrong")
	if err := push(t.Context(), archive, reference, io.Discard); err == nil || !strings.Contains(err.Error(), reference) {
		t.Errorf("with a wrong password: error %v, want one that names %s", err, reference)
	}

	logIn(t, host, "secret")
	var out bytes.Buffer
	if err := push(t.Context(), archive, reference, &out); err != nil {
		t.Fatal(err)
	}
	if want := reference + "@" + digest + "\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}

	// What a node gets that pulls by the digest in the manifests.
	pulled, err := name.NewDigest(reference + "@" + digest)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(pulled, remote.WithContext(t.Context()), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check(index, []v1.Platform{amd64, arm64}); err != nil {
		t.Error(err)
	}
}
