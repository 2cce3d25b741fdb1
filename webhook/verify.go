package webhook

import (
	"encoding/json"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"
	kjson "sigs.k8s.io/json"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
)

// touched are the parts of a pod that our operations reach, as received. Whether a
// patch applies depends on nothing else, and applying it to them instead of the
// whole pod takes a tenth of the time.
type touched struct {
	Metadata *touchedMetadata `json:"metadata,omitempty"`
	Spec     *touchedSpec     `json:"spec,omitempty"`
}

type touchedMetadata struct {
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Labels      json.RawMessage `json:"labels,omitempty"`
}

type touchedSpec struct {
	Affinity                  json.RawMessage `json:"affinity,omitempty"`
	TopologySpreadConstraints json.RawMessage `json:"topologySpreadConstraints,omitempty"`
}

// newPatch returns the operations as the patch library has them.
func newPatch(ops []operation) (jsonpatch.Patch, error) {
	patch := make(jsonpatch.Patch, len(ops))
	for i, o := range ops {
		patch[i] = jsonpatch.Operation{"op": quoted(o.op), "path": quoted(o.path)}
		if o.value == nil {
			continue
		}
		text, err := json.Marshal(o.value)
		if err != nil {
			return nil, err
		}
		patch[i]["value"] = (*json.RawMessage)(&text)
	}
	return patch, nil
}

// quoted returns a text in JSON.
func quoted(s string) *json.RawMessage {
	text, _ := json.Marshal(s) // a string always can
	return (*json.RawMessage)(&text)
}

// verified applies the patch to the pod as received, and returns it in JSON. A patch
// that changes nothing, as on a reinvocation, is dropped.
func verified(s *submission, patch jsonpatch.Patch) ([]byte, scoring.Reason) {
	var parts touched
	if err := kjson.UnmarshalCaseSensitivePreserveInts(s.raw, &parts); err != nil {
		return nil, ReasonPatch
	}
	before, err := json.Marshal(parts)
	if err != nil {
		return nil, ReasonPatch
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, ReasonPatch
	}
	if s.ours.any() && sameJSON(before, after) {
		return nil, scoring.ReasonNone
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return nil, ReasonPatch
	}
	return text, scoring.ReasonNone
}

// sameJSON tells whether two texts say the same. The patch library's own Equal
// panics when a list has a null.
func sameJSON(a, b []byte) bool {
	var x, y any
	return kjson.UnmarshalCaseSensitivePreserveInts(a, &x) == nil &&
		kjson.UnmarshalCaseSensitivePreserveInts(b, &y) == nil && reflect.DeepEqual(x, y)
}
