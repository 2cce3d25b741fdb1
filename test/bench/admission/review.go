package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
)

// placeholder stands for the UID of a request and is as long as one.
const placeholder = "00000000-0000-0000-0000-000000000000"

// targetPath is that of the target annotation in a JSON patch.
var targetPath = "/metadata/annotations/" + strings.ReplaceAll(config.AnnotationTarget, "/", "~1")

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// newReview returns a review of a pod as the API server sends it for a ReplicaSet's
// controller, with the placeholder as UID.
func newReview(pod []byte, selector string, dryRun bool) ([]byte, error) {
	object := pod
	if selector != "" {
		var p corev1.Pod
		err := json.Unmarshal(pod, &p)
		if err != nil {
			return nil, err
		}
		p.Spec.NodeSelector = map[string]string{"pool": selector}
		if object, err = json.Marshal(&p); err != nil {
			return nil, err
		}
	}
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	return json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{Kind: "AdmissionReview", APIVersion: admissionv1.SchemeGroupVersion.String()},
		Request: &admissionv1.AdmissionRequest{
			UID: placeholder, Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
			Namespace: cluster.Namespace, Operation: admissionv1.Create, DryRun: &dryRun,
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:kube-system:replicaset-controller", UID: "0a3c1f5e-9a1b-4c67-8d70-5f3c2f1b7f10",
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
				Extra:  map[string]authenticationv1.ExtraValue{"authentication.kubernetes.io/credential-id": {"JTI=6d1f2f53-5f0e-4b8e-9a6c-2f7c1b3e4d5a"}},
			},
			Object:  runtime.RawExtension{Raw: bytes.TrimSpace(object)},
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
}

// readReviews returns the reviews of the pod in a file, one for real and a dry run.
func readReviews(path, selector string) (wet, dry []byte, err error) {
	pod, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the pod: %w", err)
	}
	if wet, err = newReview(pod, selector, false); err == nil {
		dry, err = newReview(pod, selector, true)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("making reviews of %s: %w", path, err)
	}
	return wet, dry, nil
}

// checker knows what a right answer of a system is.
type checker struct {
	system string
	shape  *cluster.Shape
}

func (c *checker) wantPatch() bool {
	// Ours gives pods that fit nowhere something else than a ranking.
	return c.system == ours || c.system == against || c.system == naive && !c.shape.NothingFits
}

// errUnpatched says that an answer has no patch though it should: ours on a machine
// so busy that the decision timeout was over.
var errUnpatched = errors.New("answer without a patch")

// glance returns an error when an answer is wrong, as far as that can be seen
// without decoding it, which would take CPU from the server.
func (c *checker) glance(body []byte) error {
	patched := bytes.Contains(body, []byte(`"patch":`))
	switch {
	case !bytes.Contains(body, []byte(`"allowed":true`)) || patched && !c.wantPatch():
		return fmt.Errorf("wrong answer, a patch is expected: %v: %.300s", c.wantPatch(), body)
	case patched != c.wantPatch():
		return errUnpatched
	default:
		return nil
	}
}

// check returns an error when an answer is wrong.
func (c *checker) check(body []byte, uid string) error {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return fmt.Errorf("decoding an answer: %w", err)
	}
	if review.Response == nil || review.Response.UID != types.UID(uid) || !review.Response.Allowed {
		return fmt.Errorf("answer to request %s: %.300s", uid, body)
	}
	if !c.wantPatch() {
		return nil
	}
	var operations []operation
	if err := json.Unmarshal(review.Response.Patch, &operations); err != nil {
		return fmt.Errorf("decoding a patch: %w", err)
	}
	if len(operations) == 0 {
		return errors.New("the patch is empty")
	}
	target := ""
	for _, o := range operations {
		if o.Path == targetPath {
			target, _ = o.Value.(string)
		}
	}
	return c.shape.CheckTarget(target)
}
