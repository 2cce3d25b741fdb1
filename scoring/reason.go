package scoring

// Reason says why a pod got no ranking. Reasons are values for logs and metric
// labels, not errors: leaving a pod alone is normal.
type Reason string

// Reasons of this package; package webhook adds those of its own checks.
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
	// ours.
	ReasonUserPreference Reason = "UserPreference"
)
