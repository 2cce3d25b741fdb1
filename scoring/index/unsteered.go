package index

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/reduced"
)

// unsteered counts the pods that look as if we should have been asked about them and have
// no decision of ours. Some of them were asked about and left alone; but when they appear
// and nobody asks at all, the API server does not reach us, and failurePolicy Ignore hides
// that. What becomes of a pod later, when its gates open, say, is nothing that we are asked
// about: so each counts when it is first seen.
type unsteered struct {
	count int
	// seen are all pods that have no node yet, each of which appears once.
	seen map[types.UID]struct{}
}

// has tells whether a pod was seen before, and had no node then.
func (u *unsteered) has(uid types.UID) bool {
	_, seen := u.seen[uid]
	return seen
}

// note follows a pod; counts tells whether new ones count.
func (u *unsteered) note(pod *reduced.Pod, counts bool) {
	if pod.Over || pod.NodeName != "" {
		delete(u.seen, pod.UID)
		return
	}
	if u.has(pod.UID) {
		return
	}
	u.seen[pod.UID] = struct{}{}
	if pod.Expects && counts {
		u.count++
	}
}
