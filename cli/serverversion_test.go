package cli

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
)

// versionServer answers /version as API servers do.
type versionServer struct {
	gitVersion  atomic.Value
	connections atomic.Int32
}

func (s *versionServer) start(t *testing.T) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version := s.gitVersion.Load()
		if r.URL.Path != "/version" || version == "" {
			http.Error(w, "no version", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"major":"1","minor":"0+","gitVersion":"` + version.(string) + `"}`))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

// newFollower returns a follower of the server, by a configuration, and its log.
func newFollower(t *testing.T, restConfig *rest.Config, configured string) (*versionFollower, *[]string) {
	t.Helper()
	server, err := newServerVersion(restConfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.Scheduler.KubernetesVersion = configured
	ix, err := index.New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	f := &versionFollower{
		server: server, version: scoring.NewScorer(cfg, ix).Version(),
		log: logr.New(funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}).GetSink()),
	}
	if configured != "" {
		if f.configured, err = config.ParseMinorVersion(configured); err != nil {
			t.Fatal(err)
		}
	}
	return f, &lines
}

func TestVersionFollower(t *testing.T) {
	for name, tc := range map[string]struct {
		configured string
		// answers are the gitVersions of one look each, "" for an error.
		answers []string
		// held and source are what counts at the end.
		held   string
		source scheduler.VersionSource
		// logged is a part of each line of the log.
		logged []string
	}{
		"it stays": {
			answers: []string{"v1.35.1-gke.100", "v1.35.1-gke.100"},
			held:    "1.35", source: scheduler.VersionServer,
			logged: []string{`"apiServer"="v1.35.1-gke.100"`},
		},
		"an upgrade": {
			answers: []string{"v1.35.4", "v1.36.0", "v1.36.0"},
			held:    "1.36 1.35", source: scheduler.VersionServer,
			logged: []string{`"apiServer"="v1.35.4"`, `"apiServer"="v1.36.0"`},
		},
		"unreadable": {
			answers: []string{"", ""},
			held:    config.NewestVersion.String(), source: scheduler.VersionAssumed,
			logged: []string{"cannot be read"},
		},
		"readable after a while": {
			answers: []string{"", "v1.34.4-eks-113cf36"},
			held:    "1.34", source: scheduler.VersionServer,
			logged: []string{"cannot be read", `"apiServer"="v1.34.4-eks-113cf36"`},
		},
		"unreadable for a while": {
			answers: []string{"v1.34.4", "", "", "v1.34.4"},
			held:    "1.34", source: scheduler.VersionServer,
			logged: []string{`"apiServer"="v1.34.4"`, "cannot be read"},
		},
		"no version of Kubernetes": {
			answers: []string{"v0.0.0-master"},
			held:    config.NewestVersion.String(), source: scheduler.VersionAssumed,
			logged: []string{"is no version of Kubernetes"},
		},
		"an override that differs": {
			configured: "1.37", answers: []string{"v1.35.4", "v1.35.4", "v1.36.0"},
			held: "1.37", source: scheduler.VersionConfigured,
			logged: []string{
				"Weights are computed", "remove scheduler.kubernetesVersion",
				"remove scheduler.kubernetesVersion", // 1.36 has not the formulas of 1.37 either
			},
		},
		"an override with the same formulas": {
			configured: "1.35", answers: []string{"v1.34.4", "v1.35.0"},
			held: "1.35", source: scheduler.VersionConfigured,
			logged: []string{"Weights are computed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &versionServer{}
			f, lines := newFollower(t, server.start(t), tc.configured)
			for _, answer := range tc.answers {
				server.gitVersion.Store(answer)
				f.look(t.Context())
			}
			var held []string
			for _, v := range f.version.Held() {
				held = append(held, v.String())
			}
			if got := strings.Join(held, " "); got != tc.held || f.version.Source() != tc.source {
				t.Errorf("versions %s, source %s", got, f.version.Source())
			}
			if len(*lines) != len(tc.logged) {
				t.Fatalf("logged %q", *lines)
			}
			for i, part := range tc.logged {
				if !strings.Contains((*lines)[i], part) {
					t.Errorf("line %d is %q, without %q", i, (*lines)[i], part)
				}
			}
		})
	}
}

// Of several API servers behind a load balancer a kept connection shows only one.
func TestEachLookHasAConnectionOfItsOwn(t *testing.T) {
	server := &versionServer{}
	server.gitVersion.Store("v1.36.0")
	f, _ := newFollower(t, server.start(t), "")
	for range 3 {
		f.look(t.Context())
	}
	if diff := cmp.Diff(int32(3), server.connections.Load()); diff != "" {
		t.Errorf("connections (-want +got):\n%s", diff)
	}
}

// An API server that accepts connections and never answers must not hold up the start
// for longer than the timeout of a look.
func TestALookEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	f, _ := newFollower(t, &rest.Config{Host: "http://" + listener.Addr().String()}, "")
	start := time.Now()
	f.look(t.Context())
	if took := time.Since(start); took > 2*versionTimeout {
		t.Errorf("a look took %s", took)
	}
	if f.version.Source() != scheduler.VersionAssumed {
		t.Errorf("source %s", f.version.Source())
	}
}
