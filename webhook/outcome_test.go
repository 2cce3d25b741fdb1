package webhook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// canary stands for a secret.
const canary = "canary-7f3a91c2"

// canaryPod has it wherever a user may put one.
const canaryPod = `{"metadata":{"name":"p","annotations":{"a":"` + canary + `"},"labels":{"l":"` + canary + `"}},"spec":{` +
	`"imagePullSecrets":[{"name":"` + canary + `"}],"volumes":[{"name":"v","secret":{"secretName":"` + canary + `"}}],` +
	`"nodeSelector":{"n":"` + canary + `"},"containers":[{"name":"c","args":["` + canary + `"],` +
	`"env":[{"name":"PASSWORD","value":"` + canary + `"}],"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`

// No part of a pod but its name is ever logged, at any level, whatever happens.
func TestLogHoldsNoSecret(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	deciders := map[string]deciderFunc{
		"ranked":         decide(ranked("g1", "g2")),
		"left alone":     decide(scoring.Decision{Reason: steering.ReasonInvalidRequest}),
		"late":           decide(scoring.Decision{Reason: steering.ReasonNothingFits, Late: &steering.Late{LabelValue: "x"}}),
		"patch rejected": decide(ranked("Not_A_Name")),
		"timeout": func(scoring.Request) scoring.Decision {
			<-release
			return scoring.Decision{}
		},
		"panic with the pod":          func(r scoring.Request) scoring.Decision { panic(r.Pod) },
		"panic with a formatted pod":  func(r scoring.Request) scoring.Decision { panic(fmt.Sprintf("%+v", r.Pod)) },
		"panic with an error":         func(r scoring.Request) scoring.Decision { panic(fmt.Errorf("pod %+v", r.Pod)) },
		"panic of the runtime":        func(r scoring.Request) scoring.Decision { return ranked(r.Pod.Spec.Containers[0].Args[9]) },
		"panic of the runtime, a map": func(r scoring.Request) scoring.Decision { panic(map[any]int{r.Pod.Spec.Containers: 1}) },
	}
	objects := map[string]string{
		"a pod":                 canaryPod,
		"a wrong quantity":      strings.Replace(canaryPod, `"nvidia.com/gpu":"1"`, `"nvidia.com/gpu":"`+canary+`"`, 1),
		"a wrong type":          strings.Replace(canaryPod, `"args":["`, `"args":{"`+canary+`":["`, 1),
		"a text, not an object": `"` + canary + `"`,
	}
	for name, decider := range deciders {
		for object, raw := range objects {
			t.Run(name+", "+object, func(t *testing.T) {
				bed := handlerWith(t, decider)
				bed.cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Minute}
				if name == "timeout" {
					bed.cfg.Server.DecisionTimeout = metav1.Duration{Duration: time.Millisecond}
				}
				if response := bed.Handle(t.Context(), podCreate([]byte(raw))); !response.Allowed {
					t.Errorf("response %+v", response)
				}
				checkLog(t, bed)
			})
		}
	}
}

// Names of pods are for debugging only.
func TestPodsAreNamedAtDebugLevelOnly(t *testing.T) {
	for name, decider := range map[string]deciderFunc{
		"ranked":  decide(ranked("g1", "g2")),
		"timeout": decide(scoring.Decision{Reason: steering.ReasonTimeout}),
		"panic":   func(r scoring.Request) scoring.Decision { panic(r.Pod) },
	} {
		for verbosity, named := range []bool{false, name == "ranked"} {
			t.Run(fmt.Sprint(name, ", ", verbosity), func(t *testing.T) {
				bed, lines := handlerWith(t, decider), ""
				bed.Handler.log = funcr.New(func(_, args string) { lines += args }, funcr.Options{Verbosity: verbosity})
				bed.Handle(t.Context(), podCreate([]byte(strings.Replace(gpuPod, `"name":"p"`, `"name":"secret-project"`, 1))))
				if got := strings.Contains(lines, "secret-project"); got != named {
					t.Errorf("logged: %s", lines)
				}
			})
		}
	}
}
func checkLog(t *testing.T, bed *testBed) {
	t.Helper()
	text := bed.log.Text()
	if text == "" {
		t.Error("nothing was logged")
	}
	for _, secret := range []string{canary, "PASSWORD"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %s:\n%s", secret, text)
		}
	}
}

// A panic is logged once, with where it happened.
func TestPanicLogNamesThePlace(t *testing.T) {
	bed := handlerWith(t, deciderFunc(func(r scoring.Request) scoring.Decision { return ranked(r.Pod.Spec.Containers[9].Name) }))
	bed.Handle(t.Context(), podCreate([]byte(gpuPod)))
	text := bed.log.Text()
	for _, want := range []string{"index out of range [9]", "TestPanicLogNamesThePlace", `"namespace"="team-a"`, string(firstUID)} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %s:\n%s", want, text)
		}
	}
	if n := strings.Count(text, "panic:"); n != 1 {
		t.Errorf("the panic was logged %d times:\n%s", n, text)
	}
}

// Pods get their name only when they are stored; the log says what it begins with.
func TestLogNamesGeneratedPods(t *testing.T) {
	tests := map[string]struct{ metadata, want string }{
		"generated": {`{"generateName":"train-"}`, `"pod"="train-"`},
		"named":     {`{"name":"train-0","generateName":"train-"}`, `"pod"="train-0"`},
		"neither":   {`{}`, `"pod"=""`},
		"endless":   {`{"name":"` + strings.Repeat("x", 1000) + `"}`, `"pod"="` + strings.Repeat("x", 253) + `"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			bed := handlerWith(t, decide(ranked("g1")))
			bed.Handle(t.Context(), podCreate([]byte(`{"metadata":`+tc.metadata+`,"spec":{}}`)))
			if text := bed.log.Text(); !strings.Contains(text, tc.want) {
				t.Errorf("no %s in the log: %s", tc.want, text)
			}
		})
	}
}
