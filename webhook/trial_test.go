package webhook

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// A trial gives the patch that the handler would, and reserves nothing.
func TestTry(t *testing.T) {
	pod := trainer(t)
	bed := newBed(t, config.Default(), []string{"team-a"}, benchNode("n1"), benchNode("n2"))
	got, err := Try(t.Context(), bed.cfg, bed.decider, pod)
	if err != nil || got.Steering != config.SteeringRanked || got.Reason != steering.ReasonNone {
		t.Fatalf("%+v, %v", got, err)
	}
	if n := bed.ix.Size().Reservations; n != 0 {
		t.Errorf("%d reservations", n)
	}
	encoded, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	request := podCreate(encoded)
	request.UID, request.Namespace = TrialUID, pod.Namespace
	if want := bed.Handle(t.Context(), request).Patch; string(got.Patch) != string(want) {
		t.Errorf("patch\n%s, want\n%s", got.Patch, want)
	}
}

func TestTryWithoutAnswer(t *testing.T) {
	panics := deciderFunc(func(scoring.Request) scoring.Decision { panic("boom") })
	got, err := Try(t.Context(), config.Default(), panics, trainer(t))
	if err != nil || got.Reason != steering.ReasonPanic || got.Steering != SteeringNone || got.Patch != nil {
		t.Errorf("panic: %+v, %v", got, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Try(over, config.Default(), decide(scoring.Decision{}), trainer(t)); err == nil {
		t.Error("a context that is over is no error")
	}
}

// trainer is a usual pod.
func trainer(t *testing.T) *corev1.Pod {
	t.Helper()
	raw, err := os.ReadFile("testdata/trainer.json")
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}
