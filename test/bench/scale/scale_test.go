package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/fakeapi"
)

func newContents(t *testing.T, nodes int) *contents {
	t.Helper()
	objects, err := cluster.NewRealistic("../../..")
	if err != nil {
		t.Fatal(err)
	}
	api, err := fakeapi.Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &contents{api: api, objects: objects, nodes: nodes}
	if err := errors.Join(c.addNamespace(), c.addNodes(), c.addPods(t.Context())); err != nil {
		t.Fatal(err)
	}
	return c
}

// The bare LIST sees all objects, and pods come and go without a trace.
func TestContents(t *testing.T) {
	const nodes, pods = 3, 3 * cluster.PodsPerNode
	c := newContents(t, nodes)
	if err := list(t.Context(), []string{"-kubeconfig", c.api.Kubeconfig(), "-nodes", "3", "-pods", "90"}); err != nil {
		t.Error(err)
	}
	if err := list(t.Context(), []string{"-kubeconfig", c.api.Kubeconfig(), "-nodes", "3", "-pods", "91"}); err == nil {
		t.Error("a pod is missing and nobody sees it")
	}
	var phases []corev1.PodPhase
	for range steps {
		if err := c.changePod(0); err != nil {
			t.Fatal(err)
		}
		phases = append(phases, c.passing.Status.Phase)
		if count, _ := c.api.Bytes("pods"); count != pods+1 && len(phases) < steps {
			t.Errorf("%d pods after %d steps", count, len(phases))
		}
	}
	if phases[stepCreated] != corev1.PodPending || phases[stepRunning] != corev1.PodRunning {
		t.Error(phases)
	}
	if err := c.changePod(0); err != nil {
		t.Fatal(err)
	}
	if err := c.finishLife(); err != nil {
		t.Fatal(err)
	}
	if count, size := c.api.Bytes("pods"); count != pods || size < pods*1000 {
		t.Errorf("%d pods of %d bytes at the end", count, size)
	}
}

func TestRepeat(t *testing.T) {
	var calls []int
	if err := repeat(t.Context(), 100*time.Millisecond, 50, func(i int) error { calls = append(calls, i); return nil }); err != nil || len(calls) != 5 || calls[4] != 4 {
		t.Errorf("%v, %v", calls, err)
	}
	wrong := errors.New("wrong")
	if err := repeat(t.Context(), time.Second, 50, func(int) error { return wrong }); !errors.Is(err, wrong) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := repeat(ended, time.Hour, 0.001, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestResult(t *testing.T) {
	r := result{Nodes: 5000, Pods: 150000, RSSMiB: 250, ReadySeconds: 6, BareListSeconds: 4}
	var table strings.Builder
	if err := writeTable(&table, r); err != nil || !strings.Contains(table.String(), "1.50") {
		t.Errorf("%v\n%s", err, &table)
	}
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	// The keys that design.md promises.
	for _, key := range []string{"nodes", "pods", "rssMiB", "peakRssMiB", "bytesPerPod", "readySeconds", "bareListSeconds", "idleCpuPercent", "stressCpuPercent"} {
		if !strings.Contains(string(data), `"`+key+`":`) {
			t.Errorf("no %s in %s", key, data)
		}
	}
}
