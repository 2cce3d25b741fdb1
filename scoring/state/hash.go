package state

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// publicDomains are those of label keys whose values say what kind of machine a
// node is, not whose: they stay readable.
var publicDomains = []string{
	"kubernetes.io", "k8s.io", "gpu-binpacker.io", "nvidia.com", "amd.com", "intel.com", "karpenter.sh",
	"cloud.google.com", "eks.amazonaws.com", "karpenter.k8s.aws", "kubernetes.azure.com",
}

// Hash returns a copy in which the names of nodes, namespaces, pods, owners,
// containers, images and priority classes are replaced, and the values of all
// labels whose keys are not of a well-known domain; equal names by equal ones,
// within this state only. Quantities, times, UIDs, keys and well-known labels such
// as zone and instance type stay. Nodes of equal rank may change places, since
// their names decide between them.
func (s *State) Hash() (*State, error) {
	h := hasher{salt: make([]byte, 16), nodes: map[string]bool{}}
	if _, err := rand.Read(h.salt); err != nil {
		return nil, fmt.Errorf("drawing a salt: %w", err)
	}
	for i := range s.Nodes {
		h.nodes[s.Nodes[i].Name] = true
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encoding the state: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("decoding the state: %w", err)
	}
	h.object(tree)
	if data, err = json.Marshal(tree); err != nil {
		return nil, fmt.Errorf("encoding the hashed state: %w", err)
	}
	out := &State{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("decoding the hashed state: %w", err)
	}
	out.Hashed = true
	out.sort()
	return out, nil
}

// hasher replaces names in decoded JSON.
type hasher struct {
	salt  []byte
	nodes map[string]bool
}

// name returns what stands for a name: a valid one for everything in Kubernetes.
func (h *hasher) name(kind, name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256(slices.Concat(h.salt, []byte(kind), []byte{0}, []byte(name)))
	return kind + "-" + hex.EncodeToString(sum[:6])
}

// kinds are the fields that hold a name, and of what.
var kinds = map[string]string{
	"namespace": "ns", "nodeName": "node", "nominatedNodeName": "node", "image": "image", "reference": "image", "priorityClassName": "priority",
}

// lists are the fields that hold objects with a name, and of what.
var lists = map[string]string{
	"nodes": "node", "pods": "pod", "over": "pod", "ownerReferences": "owner", "containers": "container", "initContainers": "container", "volumes": "volume",
	"containerStatuses": "container", "initContainerStatuses": "container",
}

func (h *hasher) object(o map[string]any) {
	h.requirement(o)
	for key, value := range o {
		switch v := value.(type) {
		case string:
			if kind := kinds[key]; kind != "" {
				o[key] = h.name(kind, v)
			}
		case map[string]any:
			switch key {
			case "labels", "nodeSelector", "matchLabels":
				h.labels(v)
			case "annotations":
				h.annotations(v)
			default:
				h.object(v)
			}
		case []any:
			h.list(key, v)
		}
	}
}

func (h *hasher) list(key string, list []any) {
	for i, element := range list {
		switch e := element.(type) {
		case map[string]any:
			if kind := lists[key]; kind != "" {
				h.rename(e, kind)
			}
			h.object(e)
		case string:
			switch key {
			case "enabledNamespaces", "namespaces":
				list[i] = h.name("ns", e)
			case "names": // of an image on a node
				list[i] = h.name("image", e)
			}
		}
	}
}

// rename replaces the name of an object, in it or in its metadata.
func (h *hasher) rename(o map[string]any, kind string) {
	if metadata, ok := o["metadata"].(map[string]any); ok {
		o = metadata
	}
	if name, ok := o["name"].(string); ok {
		o["name"] = h.name(kind, name)
	}
}

func (h *hasher) labels(all map[string]any) {
	for key, value := range all {
		if v, ok := value.(string); ok {
			all[key] = h.label(key, v)
		}
	}
}

func (h *hasher) label(key, value string) string {
	switch {
	case h.nodes[value] || key == corev1.LabelHostname || key == "metadata.name":
		return h.name("node", value)
	case key == corev1.LabelMetadataName:
		return h.name("ns", value)
	case isPublic(key):
		return value
	}
	return h.name("label", value)
}

func isPublic(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	return found && slices.ContainsFunc(publicDomains, func(d string) bool {
		return domain == d || strings.HasSuffix(domain, "."+d)
	})
}

// requirement replaces the values of a node or label selector requirement, but not
// the numbers that Gt and Lt compare, and the value of a taint or toleration.
func (h *hasher) requirement(o map[string]any) {
	key, ok := o["key"].(string)
	if !ok {
		return
	}
	if value, ok := o["value"].(string); ok && value != "" {
		o["value"] = h.label(key, value)
	}
	if operator := o["operator"]; operator == "Gt" || operator == "Lt" {
		return
	}
	values, _ := o["values"].([]any)
	for i, value := range values {
		if v, ok := value.(string); ok {
			values[i] = h.label(key, v)
		}
	}
}

// rankedName is a node's name in the ranking, which needs no escapes.
var rankedName = regexp.MustCompile(`"name":"([^"]*)"`)

// annotations replaces the node names in ours, which are a node's name or JSON with
// such names. A node that is gone meanwhile is replaced too.
func (h *hasher) annotations(all map[string]any) {
	for key, value := range all {
		text, _ := value.(string)
		switch key {
		case config.AnnotationTarget:
			all[key] = h.name("node", text)
		case config.AnnotationRanking:
			all[key] = rankedName.ReplaceAllStringFunc(text, func(match string) string {
				return `"name":"` + h.name("node", rankedName.FindStringSubmatch(match)[1]) + `"`
			})
		}
	}
}
