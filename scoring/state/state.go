// Package state is a cluster as gpu-binpacker sees it, in a file: what explain and
// report read instead of a cluster, and what a bug report carries along.
//
// Files in reading order:
//
//   - state.go: START HERE, the file and how it is read and written
//   - example.go: the built-in cluster
//   - hash.go: names replaced, for files that leave the house
package state

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// The type of the file.
const (
	APIVersion = config.APIVersion
	Kind       = "State"
)

// State is a cluster at one moment.
type State struct {
	metav1.TypeMeta `json:",inline"`
	// TakenAt is when the cluster was read.
	TakenAt metav1.Time `json:"takenAt"`
	// Version is that of the gpu-binpacker that wrote the file, ServerVersion that of
	// the API server.
	Version       string `json:"version,omitempty"`
	ServerVersion string `json:"serverVersion,omitempty"`
	// Hashed: names are replaced, as Hash does.
	Hashed bool `json:"hashed,omitempty"`
	// EnabledNamespaces are those that opted in, sorted.
	EnabledNamespaces []string `json:"enabledNamespaces"`
	// Nodes are all nodes, Pods all that are not over, both sorted by name and with
	// no more in them than scheduling depends on.
	Nodes []corev1.Node `json:"nodes"`
	Pods  []corev1.Pod  `json:"pods"`
	// Over are pods that are over and did not start on their node, and those that ran on
	// such a node: they tell whether it takes pods. Sorted by name as well.
	Over []corev1.Pod `json:"over,omitempty"`
}

// New returns the state of a cluster with these objects, which it does not change.
// Of pods that are over only those are kept that tell of nodes that refuse pods.
func New(takenAt time.Time, enabledNamespaces []string, nodes []corev1.Node, pods []corev1.Pod) *State {
	s := &State{
		TypeMeta:          metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		TakenAt:           metav1.NewTime(takenAt.UTC().Truncate(time.Second)),
		EnabledNamespaces: slices.Clone(enabledNamespaces),
		Nodes:             make([]corev1.Node, len(nodes)),
		Pods:              make([]corev1.Pod, 0, len(pods)),
	}
	for i := range nodes {
		s.Nodes[i] = reduced.StripNode(&nodes[i])
	}
	var over []*corev1.Pod
	refusing := sets.New[string]()
	for i := range pods {
		if phase := pods[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			s.Pods = append(s.Pods, reduced.StripPod(&pods[i]))
			continue
		}
		switch reduced.Speaks(&pods[i]) {
		case reduced.OutcomeRefused, reduced.OutcomeRefusedShape:
			refusing.Insert(pods[i].Spec.NodeName)
			over = append(over, &pods[i])
		case reduced.OutcomeStarted:
			over = append(over, &pods[i])
		case reduced.OutcomeUnknown:
		}
	}
	for _, pod := range over {
		if refusing.Has(pod.Spec.NodeName) {
			s.Over = append(s.Over, reduced.StripPod(pod))
		}
	}
	s.sort()
	return s
}

func (s *State) sort() {
	byName := func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	}
	slices.Sort(s.EnabledNamespaces)
	slices.SortFunc(s.Nodes, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Pods, byName)
	slices.SortFunc(s.Over, byName)
}

// Load reads a state from a file; "-" means in.
func Load(path string, in io.Reader) (*State, error) {
	if path == "-" {
		data, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("reading the state from standard input: %w", err)
		}
		return parse("standard input", data)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	return parse(path, data)
}

func parse(name string, data []byte) (*State, error) {
	s := &State{}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("%s is not a state file: %w; write one with `gpu-binpacker report --save-state`", name, err)
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// validate returns all that is wrong with a state that was read.
func (s *State) validate() error {
	if s.APIVersion != APIVersion || s.Kind != Kind {
		return fmt.Errorf("it is %s %s, not %s %s; write a state file with `gpu-binpacker report --save-state`",
			orNothing(s.APIVersion), orNothing(s.Kind), APIVersion, Kind)
	}
	var errs []error
	if s.TakenAt.IsZero() {
		errs = append(errs, errors.New("takenAt: is missing; it is the time at which the cluster was read, such as 2026-01-31T12:00:00Z"))
	}
	nodes := map[string]bool{}
	for i := range s.Nodes {
		name := s.Nodes[i].Name
		switch {
		case name == "":
			errs = append(errs, fmt.Errorf("nodes[%d].metadata.name: is missing", i))
		case nodes[name]:
			errs = append(errs, fmt.Errorf("nodes[%d].metadata.name: %q is there twice", i, name))
		}
		nodes[name] = true
	}
	pods := map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		key := p.Namespace + "/" + p.Name
		switch {
		case p.Name == "" || p.Namespace == "":
			errs = append(errs, fmt.Errorf("pods[%d].metadata: name and namespace must be there", i))
		case pods[key]:
			errs = append(errs, fmt.Errorf("pods[%d].metadata: %s is there twice", i, key))
		}
		pods[key] = true
		if p.UID == "" {
			errs = append(errs, fmt.Errorf("pods[%d].metadata.uid: is missing; without it pods cannot be told apart", i))
		}
	}
	return errors.Join(errs...)
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// Save writes the state to a file that only its owner can read: "-" means out.
func (s *State) Save(path string, out io.Writer) error {
	data, err := yaml.Marshal(s)
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	if path == "-" {
		_, err := out.Write(data)
		return err
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	return nil
}

// Index returns an index of the state, at the time at which it was taken.
func (s *State) Index(cfg config.Configuration) (*index.Index, error) {
	ix, err := index.New(cfg, func() time.Time { return s.TakenAt.Time })
	if err != nil {
		return nil, err
	}
	for _, name := range s.EnabledNamespaces {
		ix.SetNamespace(name, true)
	}
	for i := range s.Nodes {
		ix.SetNode(&s.Nodes[i])
	}
	for _, pods := range [][]corev1.Pod{s.Pods, s.Over} {
		for i := range pods {
			ix.SetPod(&pods[i])
		}
	}
	ix.SetSynced()
	return ix, nil
}

// Scorer returns a scorer for an index of the state. It goes by the version of the
// API server that the state is of, unless the configuration names one; by the newest
// where the state does not tell.
func (s *State) Scorer(cfg config.Configuration, ix *index.Index) *scoring.Scorer {
	scorer := scoring.NewScorer(cfg, ix)
	if version, err := config.ParseServerVersion(s.ServerVersion); err == nil {
		scorer.Version().See(version)
	}
	return scorer
}

// Enabled tells whether a namespace opted in.
func (s *State) Enabled(namespace string) bool {
	return slices.Contains(s.EnabledNamespaces, namespace)
}
