package webhook

import (
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is read of a pod. It has some hundred fields and is read in the hot
// path, so only those are decoded that a decision depends on; unknown fields are
// ignored, as the API server does. What a patch touches is kept as received.

// wirePod is a pod. Its parts are pointers where a patch has to know whether they
// are there.
type wirePod struct {
	Metadata *wireMetadata `json:"metadata"`
	Spec     *wireSpec     `json:"spec"`
}

type wireMetadata struct {
	Name            string                  `json:"name"`
	GenerateName    string                  `json:"generateName"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	Labels          jsontext.Value          `json:"labels"`
	Annotations     jsontext.Value          `json:"annotations"`
}

type wireSpec struct {
	InitContainers            []wireContainer              `json:"initContainers"`
	Containers                []wireContainer              `json:"containers"`
	Volumes                   []wireVolume                 `json:"volumes"`
	NodeName                  string                       `json:"nodeName"`
	NodeSelector              map[string]string            `json:"nodeSelector"`
	Tolerations               []corev1.Toleration          `json:"tolerations"`
	SchedulerName             string                       `json:"schedulerName"`
	SchedulingGates           []corev1.PodSchedulingGate   `json:"schedulingGates"`
	Overhead                  corev1.ResourceList          `json:"overhead"`
	Resources                 *corev1.ResourceRequirements `json:"resources"`
	Affinity                  jsontext.Value               `json:"affinity"`
	TopologySpreadConstraints jsontext.Value               `json:"topologySpreadConstraints"`
}

type wireContainer struct {
	Name          string                         `json:"name"`
	Image         string                         `json:"image"`
	Resources     corev1.ResourceRequirements    `json:"resources"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
}

type wireVolume struct {
	Image *corev1.ImageVolumeSource `json:"image"`
}

// pod returns the pod with the fields that are read.
func (w *wirePod) pod() (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if m := w.Metadata; m != nil {
		pod.Name, pod.GenerateName, pod.OwnerReferences = m.Name, m.GenerateName, m.OwnerReferences
		if err := unmarshal(m.Labels, &pod.Labels); err != nil {
			return nil, err
		}
		if err := unmarshal(m.Annotations, &pod.Annotations); err != nil {
			return nil, err
		}
	}
	s := w.Spec
	if s == nil {
		return pod, nil
	}
	pod.Spec = corev1.PodSpec{
		InitContainers: containers(s.InitContainers), Containers: containers(s.Containers),
		NodeName: s.NodeName, NodeSelector: s.NodeSelector, Tolerations: s.Tolerations,
		SchedulerName: s.SchedulerName, SchedulingGates: s.SchedulingGates, Overhead: s.Overhead, Resources: s.Resources,
	}
	for _, v := range s.Volumes {
		if v.Image != nil {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{Image: v.Image}})
		}
	}
	if err := unmarshal(s.Affinity, &pod.Spec.Affinity); err != nil {
		return nil, err
	}
	return pod, unmarshal(s.TopologySpreadConstraints, &pod.Spec.TopologySpreadConstraints)
}

// tolerant: bytes that are no UTF-8 are the API server's matter, as everything else
// that is wrong with a pod.
var tolerant = jsontext.AllowInvalidUTF8(true)

// written is how we write JSON: as the types of the API expect it, for which an empty
// selector is not the same as none.
var written = json.JoinOptions(tolerant, jsonv1.OmitEmptyWithLegacySemantics(true))

// unmarshal decodes a part of a pod, if it is there.
func unmarshal(raw jsontext.Value, into any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, into, tolerant)
}

func containers(list []wireContainer) []corev1.Container {
	if len(list) == 0 {
		return nil
	}
	out := make([]corev1.Container, len(list))
	for i := range list {
		c := &list[i]
		out[i] = corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return out
}

// skeleton is the pod with nothing but the parts that a patch of ours touches.
// Whether the patch applies depends on nothing else, and applying it to this takes
// a tenth of the time that the whole pod takes.
func (w *wirePod) skeleton() ([]byte, error) {
	type metadata struct {
		Labels      jsontext.Value `json:"labels,omitzero"`
		Annotations jsontext.Value `json:"annotations,omitzero"`
	}
	type spec struct {
		Affinity                  jsontext.Value `json:"affinity,omitzero"`
		TopologySpreadConstraints jsontext.Value `json:"topologySpreadConstraints,omitzero"`
	}
	var parts struct {
		Metadata *metadata `json:"metadata,omitzero"`
		Spec     *spec     `json:"spec,omitzero"`
	}
	if m := w.Metadata; m != nil {
		parts.Metadata = &metadata{m.Labels, m.Annotations}
	}
	if s := w.Spec; s != nil {
		parts.Spec = &spec{s.Affinity, s.TopologySpreadConstraints}
	}
	return json.Marshal(parts, written)
}
