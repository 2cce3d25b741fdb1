package explain

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// podKinds are the kinds that are, or make, pods: kind -> apiVersion.
var podKinds = map[string]string{
	"Pod":         "v1",
	"Deployment":  "apps/v1",
	"ReplicaSet":  "apps/v1",
	"StatefulSet": "apps/v1",
	"DaemonSet":   "apps/v1",
	"Job":         "batch/v1",
	"CronJob":     "batch/v1",
}

// FromFile reads the one pod or pod template of a YAML or JSON file of that name. Other
// objects beside it are ignored. A pod without a namespace stays without one.
func FromFile(name string, data []byte, gpus config.Resources) (*Subject, error) {
	documents, err := splitDocuments(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d, err := onlyPod(documents)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	source := d.String() + " in " + name
	if err := d.checkResources(gpus); err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	pod, err := d.decode()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	return &Subject{Pod: withDefaults(pod), Source: source}, nil
}

// document is one object of a file.
type document struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name         string `json:"name"`
		GenerateName string `json:"generateName"`
	} `json:"metadata"`
	// Items are those of a List.
	Items []json.RawMessage `json:"items"`
	raw   []byte
}

func (d *document) String() string {
	return strings.TrimSpace(d.Kind + " " + nameOf(d.Metadata.Name, d.Metadata.GenerateName))
}

// splitDocuments returns the objects of a file, those of Lists one by one.
func splitDocuments(data []byte) ([]document, error) {
	var all []document
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		raw, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, fmt.Errorf("it is no valid YAML or JSON: %w", err)
		}
		if string(raw) == "null" {
			continue // nothing but comments
		}
		found, err := newDocuments(raw)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
}

func newDocuments(raw []byte) ([]document, error) {
	d := document{raw: raw}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("it holds no Kubernetes object: %w", err)
	}
	if d.Kind != "List" {
		return []document{d}, nil
	}
	var all []document
	for _, item := range d.Items {
		found, err := newDocuments(item)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// onlyPod returns the one object that is or makes pods.
func onlyPod(documents []document) (*document, error) {
	var pods []*document
	var names, others []string
	for i := range documents {
		d := &documents[i]
		switch {
		case d.APIVersion == "" || d.Kind == "":
			return nil, errors.New("apiVersion and kind: are missing in an object; a pod has apiVersion: v1 and kind: Pod")
		case podKinds[d.Kind] == "":
			others = append(others, d.String())
		case podKinds[d.Kind] != d.APIVersion:
			return nil, fmt.Errorf("%s: apiVersion: is %q; write %q", d, d.APIVersion, podKinds[d.Kind])
		default:
			pods = append(pods, d)
			names = append(names, d.String())
		}
	}
	kinds := strings.Join(slices.Sorted(maps.Keys(podKinds)), ", ")
	switch {
	case len(pods) == 1:
		return pods[0], nil
	case len(pods) > 1:
		return nil, fmt.Errorf("more than one object that makes pods: %s; leave one", strings.Join(names, ", "))
	case len(others) > 0:
		return nil, fmt.Errorf("no object that makes pods, only %s; give one of %s", strings.Join(others, ", "), kinds)
	default:
		return nil, fmt.Errorf("it is empty; give one of %s", kinds)
	}
}

// decode returns the pod, strictly: an unknown field is a typing mistake.
func (d *document) decode() (*corev1.Pod, error) {
	codecs := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDeserializer().Decode(d.raw, nil, nil)
	if err != nil {
		if runtime.IsStrictDecodingError(err) {
			return nil, fmt.Errorf("%w; mend the spelling or remove the field", err)
		}
		return nil, err
	}
	pod, path := podOf(object)
	if len(pod.Spec.Containers) == 0 {
		return nil, fmt.Errorf("%sspec.containers: is missing; a pod needs one container", path)
	}
	return pod, nil
}

// podOf returns the pod that an object of podKinds is or makes, and the path of
// its template.
func podOf(object runtime.Object) (pod *corev1.Pod, path string) {
	const template = "spec.template."
	switch o := object.(type) {
	case *corev1.Pod:
		return o, ""
	case *appsv1.Deployment:
		return fromTemplate(&o.ObjectMeta, &o.Spec.Template, "ReplicaSet"), template
	case *appsv1.ReplicaSet:
		return fromTemplate(&o.ObjectMeta, &o.Spec.Template, "ReplicaSet"), template
	case *appsv1.StatefulSet:
		return fromTemplate(&o.ObjectMeta, &o.Spec.Template, "StatefulSet"), template
	case *appsv1.DaemonSet:
		return fromTemplate(&o.ObjectMeta, &o.Spec.Template, "DaemonSet"), template
	case *batchv1.Job:
		return fromTemplate(&o.ObjectMeta, &o.Spec.Template, "Job"), template
	case *batchv1.CronJob:
		return fromTemplate(&o.ObjectMeta, &o.Spec.JobTemplate.Spec.Template, "Job"), "spec.jobTemplate." + template
	default:
		return &corev1.Pod{}, ""
	}
}

// fromTemplate returns a pod as the controller of a workload creates it. The kind
// is that of the pod's owner.
func fromTemplate(workload *metav1.ObjectMeta, template *corev1.PodTemplateSpec, kind string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	controller := true
	pod.Name, pod.GenerateName, pod.Namespace = "", workload.Name+"-", workload.Namespace
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: podKinds[kind], Kind: kind, Name: workload.Name, UID: "new", Controller: &controller,
	}}
	return pod
}
