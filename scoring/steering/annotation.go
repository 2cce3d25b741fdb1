package steering

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const pathAnnotations = "/metadata/annotations"

// MaxUIDLength is the length of a UUID in text, which is what the API server sends as the
// UID of a request; anything longer was not written by us.
const MaxUIDLength = 36

// annotations are those that we write, in the order in which they are written, so that
// the same decision gives the same patch.
var annotations = []string{config.AnnotationSteering, config.AnnotationTarget, config.AnnotationAdmission, config.AnnotationRanking}

var annotationPart = part{
	annotations: true,
	find:        func(pod *corev1.Pod) found { return keys(pod.Annotations, annotations...) },
	operations: func(b *builder, f found, wanted *Parts) {
		b.removeKeys(pathAnnotations, slices.DeleteFunc(slices.Clone(f.keys), func(key string) bool {
			_, stays := wanted.Annotations[key]
			return stays
		}))
		if len(wanted.Annotations) > 0 && b.pod.Annotations == nil {
			b.add(pathAnnotations, struct{}{})
		}
		for _, key := range annotations {
			if value, ok := wanted.Annotations[key]; ok {
				b.add(pathAnnotations+"/"+escape(key), value)
			}
		}
	},
}
