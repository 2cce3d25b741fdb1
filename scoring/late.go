package scoring

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/demand"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// late returns the late steering for a pod, nil when it gets none: the mode is
// Off, or the pod has preferences of its own, for nodes or pods. Ours is worth up
// to 200 points of the scheduler's total and would outvote them.
func (s *Scorer) late(pod *corev1.Pod, asked *demand.Demand) *steering.Late {
	if s.cfg.LateSteering.Mode == config.LateOff || hasPodPreferences(pod) || len(steering.PreferredTerms(pod)) > 0 {
		return nil
	}
	return &steering.Late{LabelValue: lateLabelValue(asked.GPUs[0].Name), Scope: s.cfg.LateSteering.Scope}
}

func hasPodPreferences(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	return a != nil &&
		(a.PodAffinity != nil && len(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0 ||
			a.PodAntiAffinity != nil && len(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution) > 0)
}

// lateLabelValue turns a resource name into a label value: "/" becomes "_", and
// a name longer than a label value may be becomes a hash.
func lateLabelValue(name corev1.ResourceName) string {
	value := strings.ReplaceAll(string(name), "/", "_")
	if len(value) > validation.LabelValueMaxLength {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:16])
	}
	return value
}
