package steering

// Reason says why a pod got no ranking. Reasons are values for logs and metric
// labels, not errors: leaving a pod alone is normal.
type Reason string

// Reasons: of the request, of the pod itself, of what it asks for, and of the decision.
const (
	// ReasonNone: the pod is steered.
	ReasonNone Reason = ""
	// ReasonNoGPU: no configured GPU resource is requested.
	ReasonNoGPU Reason = "NoGPU"
	// ReasonInvalidRequest: a GPU quantity is not a whole number of at least
	// zero, or too large; the API server will judge it.
	ReasonInvalidRequest Reason = "InvalidRequest"
	// ReasonInvalidAffinity: the pod's required affinity does not parse; the API
	// server will judge it.
	ReasonInvalidAffinity Reason = "InvalidAffinity"
	// ReasonNotSynced: the index has not seen all nodes and pods yet.
	ReasonNotSynced Reason = "NotSynced"
	// ReasonPinned: exactly one node can match the required affinity.
	ReasonPinned Reason = "Pinned"
	// ReasonNothingFits: no node can take the pod now.
	ReasonNothingFits Reason = "NothingFits"
	// ReasonUserPreference: the user's own preferred terms leave no weight for
	// ours, or any weight of ours could reverse them.
	ReasonUserPreference Reason = "UserPreference"
	// ReasonUnknownResource: the pod asks for another extended resource that no
	// node offers, next to a GPU that nodes do: a sharing scheme of someone else.
	ReasonUnknownResource Reason = "UnknownResource"
	// ReasonTimeout: the decision took longer than the decision timeout, or would have, since
	// many pods of new kinds were waiting in the namespace.
	ReasonTimeout Reason = "Timeout"
	// ReasonTooLarge: the pod has more of something (bytes, resources, our own parts) than a
	// decision should have to go through.
	ReasonTooLarge Reason = "TooLarge"
	// ReasonConstraintsTooLarge: the pod's node selector, tolerations and node affinity,
	// required and preferred, have more requirements, values or bytes together than can be
	// compared with every node.
	ReasonConstraintsTooLarge Reason = "ConstraintsTooLarge"
	// ReasonNotPodCreate: not the creation of a pod.
	ReasonNotPodCreate Reason = "NotPodCreate"
	// ReasonUndecodable: the object does not decode as a pod; the API server
	// will judge it.
	ReasonUndecodable Reason = "Undecodable"
	// ReasonBound: spec.nodeName is set, the scheduler is not asked.
	ReasonBound Reason = "Bound"
	// ReasonNodePod: a mirror, DaemonSet or node-owned pod; its node is given.
	ReasonNodePod Reason = "NodePod"
	// ReasonOtherScheduler: spec.schedulerName is not one that we serve.
	ReasonOtherScheduler Reason = "OtherScheduler"
	// ReasonGated: scheduling gates; a ranking would be stale when they open.
	ReasonGated Reason = "Gated"
	// ReasonOptedOut: the pod carries the opt-out label.
	ReasonOptedOut Reason = "OptedOut"
	// ReasonPodGroup: a plain pod of a Kueue group, whose pods must stay alike.
	ReasonPodGroup Reason = "PodGroup"
	// ReasonSpread: the user asks for the pods to be spread.
	ReasonSpread Reason = "Spread"
	// ReasonPatch: the patch did not apply or was invalid; a bug, counted.
	ReasonPatch Reason = "PatchRejected"
	// ReasonPanic: a panic while deciding; a bug, counted.
	ReasonPanic Reason = "Panic"
)
