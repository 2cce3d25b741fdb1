package schedulerconfig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// kind is that of kube-scheduler's configuration file.
const kind = "KubeSchedulerConfiguration"

// found is a KubeSchedulerConfiguration of a file.
type found struct {
	// where is the field that holds it; empty when it is a document of its own.
	where string
	// raw is its JSON.
	raw []byte
}

// search collects what a file holds.
type search struct {
	found []found
	// others are the kinds of documents that hold none.
	others []string
}

// find returns the one KubeSchedulerConfiguration of a file. It may be a document of
// its own, or be inside a ConfigMap, AKS's SchedulerConfiguration or a machine
// configuration of Talos.
func find(data []byte) (found, error) {
	var s search
	if err := s.documents("", data); err != nil {
		return found{}, err
	}
	switch {
	case len(s.found) == 1:
		return s.found[0], nil
	case len(s.found) > 1:
		return found{}, fmt.Errorf("%d objects of kind %s; leave the one that kube-scheduler is started with", len(s.found), kind)
	case len(s.others) > 0:
		return found{}, fmt.Errorf("no %s, only %s; give the file that kube-scheduler's flag --config names", kind, strings.Join(s.others, ", "))
	}
	return found{}, fmt.Errorf("it is empty; give the file that kube-scheduler's flag --config names, with a %s", kind)
}

// documents searches every YAML document of a text.
func (s *search) documents(where string, text []byte) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return at(where, err)
		}
		raw, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return at(where, fmt.Errorf("it is no valid YAML or JSON: %w", err))
		}
		if string(raw) == "null" {
			continue // nothing but comments
		}
		if err := s.object(where, raw); err != nil {
			return err
		}
	}
}

// object searches one object.
func (s *search) object(where string, raw []byte) error {
	var o struct {
		metav1.TypeMeta `json:",inline"`
		// Version is what the machine configuration of Talos has for an apiVersion.
		Version string `json:"version"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return at(where, fmt.Errorf("it is no object with apiVersion and kind: %w", err))
	}
	group := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()
	switch {
	case group == schema.GroupKind{Group: schedulerv1.GroupName, Kind: kind}:
		s.found = append(s.found, found{where: where, raw: raw})
		return nil
	case o.APIVersion == "v1" && o.Kind == "List":
		return s.list(where, raw)
	case o.APIVersion == "v1" && o.Kind == "ConfigMap":
		return s.configMap(where, raw)
	case group == schema.GroupKind{Group: "aks.azure.com", Kind: "SchedulerConfiguration"}:
		return s.aks(where, raw)
	case o.APIVersion == "v1alpha1" && o.Kind == "KubeSchedulerConfig", o.APIVersion == "" && o.Version != "":
		return s.talos(where, raw)
	case o.APIVersion == "" || o.Kind == "":
		return at(where, fmt.Errorf("apiVersion and kind: are missing; write apiVersion: %s and kind: %s", schedulerv1.SchemeGroupVersion, kind))
	}
	s.others = append(s.others, o.Kind)
	return nil
}

// list searches the items of a List, such as kubectl prints.
func (s *search) list(where string, raw []byte) error {
	var o struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return at(where, err)
	}
	for i, item := range o.Items {
		if err := s.object(join(where, fmt.Sprintf("items[%d]", i)), item); err != nil {
			return err
		}
	}
	return nil
}

// saysKind matches a text that says that it is a KubeSchedulerConfiguration.
var saysKind = regexp.MustCompile(`(?m)^[\s{]*"?kind"?:\s*"?` + kind)

// configMap searches those values of a ConfigMap that say that they are one.
func (s *search) configMap(where string, raw []byte) error {
	var o struct {
		Data map[string]string `json:"data"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return at(where, err)
	}
	before := len(s.found)
	for _, key := range slices.Sorted(maps.Keys(o.Data)) {
		if !saysKind.MatchString(o.Data[key]) {
			continue
		}
		if err := s.documents(join(where, fmt.Sprintf("data[%q]", key)), []byte(o.Data[key])); err != nil {
			return err
		}
	}
	if len(s.found) == before {
		s.others = append(s.others, "a ConfigMap without one")
	}
	return nil
}

// aks searches the resource by which AKS takes a configuration.
func (s *search) aks(where string, raw []byte) error {
	var o struct {
		Spec struct {
			RawConfig string `json:"rawConfig"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return at(where, err)
	}
	field := join(where, "spec.rawConfig")
	if strings.TrimSpace(o.Spec.RawConfig) == "" {
		return at(field, fmt.Errorf("is missing; it holds the %s of AKS's scheduler", kind))
	}
	return s.documents(field, []byte(o.Spec.RawConfig))
}

// talos searches a machine configuration of Talos, and the document that Talos 1.14
// has for the scheduler alone. Talos itself adds apiVersion and kind.
func (s *search) talos(where string, raw []byte) error {
	var o struct {
		Config  map[string]any `json:"config"`
		Cluster struct {
			Scheduler struct {
				Config map[string]any `json:"config"`
			} `json:"scheduler"`
		} `json:"cluster"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return at(where, err)
	}
	field, config := join(where, "config"), o.Config
	if config == nil {
		field, config = join(where, "cluster.scheduler.config"), o.Cluster.Scheduler.Config
	}
	if config == nil {
		s.others = append(s.others, "a machine configuration of Talos without cluster.scheduler.config")
		return nil
	}
	if config["apiVersion"] == nil {
		config["apiVersion"] = schedulerv1.SchemeGroupVersion.String()
	}
	if config["kind"] == nil {
		config["kind"] = kind
	}
	inner, err := json.Marshal(config)
	if err != nil {
		return at(field, err)
	}
	return s.object(field, inner)
}

// at puts the field before an error.
func at(where string, err error) error {
	if where == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", where, err)
}

// join puts a field behind its parent.
func join(parent, field string) string {
	if parent == "" {
		return field
	}
	return parent + "." + field
}
