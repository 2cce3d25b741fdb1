package server

import (
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// What is read of a review. Unknown fields are ignored, as the API server does. The object
// is kept as received: what is read of it is the handler's matter.

// maxReviewUID bounds the UID of a review and maxNamespace its namespace, both of which
// a reservation keeps: the API server sends a UUID and the name of a namespace.
const (
	maxReviewUID = 128
	maxNamespace = validation.DNS1123LabelMaxLength
)

// wireReview is an AdmissionReview.
type wireReview struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Request    *wireRequest `json:"request"`
}

// wireRequest is an AdmissionRequest without the user, the old object and the
// options.
type wireRequest struct {
	UID         types.UID                   `json:"uid"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Name        string                      `json:"name"`
	Namespace   string                      `json:"namespace"`
	Operation   admissionv1.Operation       `json:"operation"`
	Object      wireObject                  `json:"object"`
	DryRun      *bool                       `json:"dryRun"`
}

// wireObject is where in the body the object is. It is the most of the body, and not
// copied.
type wireObject struct{ start, end int64 }

// UnmarshalJSONFrom notes the place of the value.
func (o *wireObject) UnmarshalJSONFrom(decoder *jsontext.Decoder) error {
	value, err := decoder.ReadValue()
	if err != nil {
		return err
	}
	o.end = decoder.InputOffset()
	o.start = o.end - int64(len(value))
	return nil
}

// in returns the object's bytes in the body.
func (o wireObject) in(body []byte) []byte { return body[o.start:o.end:o.end] }

// tolerant: bytes that are no UTF-8 are the API server's matter, as everything else
// that is wrong with an object.
var tolerant = jsontext.AllowInvalidUTF8(true)

// written is how a review is written: as the types of the API expect it, which leave out
// what is empty.
var written = json.JoinOptions(tolerant, jsonv1.OmitEmptyWithLegacySemantics(true))

// decodeReview decodes the request of a valid admission.k8s.io/v1 review. The request's
// object is a part of the body.
func decodeReview(body []byte) (*admission.Request, error) {
	var review wireReview
	// Names that are there twice are the pod's matter, which is decoded on its own.
	if err := json.Unmarshal(body, &review, tolerant, jsontext.AllowDuplicateNames(true)); err != nil {
		return nil, errors.New("body is not an AdmissionReview")
	}
	if review.APIVersion != admissionv1.SchemeGroupVersion.String() || review.Kind != "AdmissionReview" {
		return nil, fmt.Errorf("body is not an %s AdmissionReview", admissionv1.SchemeGroupVersion)
	}
	r := review.Request
	if r == nil || r.UID == "" {
		return nil, errors.New("review has no request with a UID")
	}
	if len(r.UID) > maxReviewUID || len(r.Namespace) > maxNamespace {
		return nil, errors.New("review has a UID or namespace that is longer than those of an API server")
	}
	return &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: r.UID, Kind: r.Kind, Resource: r.Resource, SubResource: r.SubResource,
		Name: r.Name, Namespace: r.Namespace, Operation: r.Operation, DryRun: r.DryRun,
		Object: runtime.RawExtension{Raw: r.Object.in(body)},
	}}, nil
}
