package steering

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

const pathLabels = "/metadata/labels"

// labelPart is the label by which the terms of late steering find each other's pods.
var labelPart = part{
	find: func(pod *corev1.Pod) found { return keys(pod.Labels, config.LabelLate) },
	operations: func(b *builder, f found, wanted *Parts) {
		if wanted.Late == nil {
			b.removeKeys(pathLabels, f.keys)
			return
		}
		if b.pod.Labels == nil {
			b.add(pathLabels, struct{}{})
		}
		b.add(pathLabels+"/"+escape(config.LabelLate), wanted.Late.LabelValue)
	},
}
