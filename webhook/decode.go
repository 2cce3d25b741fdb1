package webhook

import (
	"encoding/json/v2"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Limits of a pod that we touch.
const (
	// maxPodBytes leaves a third of the 1.5 MiB that etcd takes in one request
	// (--max-request-bytes) to what we and others add.
	maxPodBytes = 1 << 20
	// maxOwnParts is what we ever add. A pod with more elements of that shape is one whose
	// author wrote them: it is left as it is, since a patch would remove them one by one,
	// and the API server moves the rest of the list each time. Nobody else is affected by
	// them: the index does not follow such a pod.
	maxOwnParts = steering.MostElements
)

// submission is the pod of a request.
type submission struct {
	// wire is the pod as received; the patch applies to it.
	wire wirePod
	// pod is wire, decoded.
	pod *corev1.Pod
	// user is pod without the parts we added earlier: on a reinvocation, or on a
	// copy of a pod that was steered.
	user *corev1.Pod
	// own says which those parts are.
	own steering.Own
}

// checkRequest refuses requests that are not the creation of a pod. The webhook's
// rules never send any; a wrong rule must not break updates or bindings.
func checkRequest(req admission.Request) steering.Reason {
	if req.Operation != admissionv1.Create || req.SubResource != "" ||
		req.Kind.Group != "" || req.Kind.Kind != "Pod" ||
		req.Resource.Group != "" || req.Resource.Resource != "pods" {
		return steering.ReasonNotPodCreate
	}
	return steering.ReasonNone
}

// decode reads the pod of a request, with the API server's own rules: names are
// case-sensitive, unknown fields are ignored. A name that is there twice, which no
// API server sends, is an error: readers differ in what they make of it.
func decode(req admission.Request) (*submission, steering.Reason) {
	if len(req.Object.Raw) > maxPodBytes {
		return nil, steering.ReasonTooLarge
	}
	s := &submission{}
	err := json.Unmarshal(req.Object.Raw, &s.wire, tolerant)
	if err == nil {
		s.pod, err = s.wire.pod()
	}
	if err != nil {
		return nil, steering.ReasonUndecodable
	}
	s.user, s.own = steering.Separate(s.pod)
	if s.own.Exceeds() {
		return nil, steering.ReasonTooLarge
	}
	return s, steering.ReasonNone
}
