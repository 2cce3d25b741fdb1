package webhook

import (
	"encoding/json/v2"
	"reflect"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// encode returns the operations as a JSON patch. Where parts of ours are removed or
// replaced it is applied to the pod as received first, since a patch that does not
// apply would reject the pod, whatever the failure policy; one that changes nothing,
// as on a reinvocation, is dropped. Without such parts, which is nearly always, there
// are only additions to objects that are there or were added before: the fuzz targets
// apply every patch, and applying takes longer than everything else about a pod.
func encode(s *submission, operations []steering.Operation) ([]byte, steering.Reason) {
	if s.wire.Metadata == nil || s.wire.Spec == nil {
		return nil, steering.ReasonPatch // nowhere to add to; the API server sends both
	}
	patch, err := marshal(operations)
	if err != nil {
		return nil, steering.ReasonPatch
	}
	if !s.own.Any() {
		return patch, steering.ReasonNone
	}
	before, err := s.wire.skeleton()
	if err != nil {
		return nil, steering.ReasonPatch
	}
	after, err := applied(before, patch)
	if err != nil {
		return nil, steering.ReasonPatch
	}
	if sameJSON(before, after) {
		return nil, steering.ReasonNone
	}
	return patch, steering.ReasonNone
}

// applied applies a patch to a JSON text.
func applied(text, patch []byte) ([]byte, error) {
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	return decoded.Apply(text)
}

// sameJSON tells whether two texts say the same. The patch library's own Equal
// panics when a list has a null.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x, tolerant) == nil && json.Unmarshal(b, &y, tolerant) == nil && reflect.DeepEqual(x, y)
}
