package scoring

import "k8s.io/apimachinery/pkg/types"

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

// note follows a pod; counts tells whether new ones count.
func (u *unsteered) note(pod *reducedPod, counts bool) {
	if pod.over || pod.nodeName != "" {
		delete(u.seen, pod.uid)
		return
	}
	if _, seen := u.seen[pod.uid]; seen {
		return
	}
	u.seen[pod.uid] = struct{}{}
	if pod.expects && counts {
		u.count++
	}
}
