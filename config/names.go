package config

// The public names: labels, annotations and the identity of the configuration
// file. Changing one is a breaking change.
const (
	// Domain prefixes every label and annotation of the product.
	Domain = "gpu-binpacker.io"

	// LabelEnabled opts a namespace in ("true") and a single pod out ("false").
	LabelEnabled = Domain + "/enabled"
	// LabelLate marks pods that got late steering; its value is the GPU resource
	// name with "/" written as "_", hashed when that is longer than a label may be.
	LabelLate = Domain + "/late"
	// LabelNone is the key of the selector in the neutral spread constraint. No
	// pod carries it, so the constraint counts no pods and scores all nodes alike.
	LabelNone = Domain + "/none"

	// AnnotationSteering tells what was done: SteeringRanked, SteeringLate or
	// SteeringDryRun.
	AnnotationSteering = Domain + "/steering"
	// AnnotationTarget names the node the pod is expected on. Pending pods are
	// accounted to it. Never written in dry-run mode.
	AnnotationTarget = Domain + "/target"
	// AnnotationAdmission is the UID of the pod's first admission request; it
	// links the reservation in memory to the pod seen in the watch.
	AnnotationAdmission = Domain + "/admission"
	// AnnotationRanking is the ranking as compact JSON: strategy and, per listed
	// node, name, score, GPUs free after placement and weight.
	AnnotationRanking = Domain + "/ranking"

	// APIVersion and Kind identify the configuration file.
	APIVersion = Domain + "/v1alpha1"
	Kind       = "Configuration"

	// WebhookPath is where the API server posts pods; WebhookName names the
	// webhook and WebhookConfigurationName its configuration, which sorts after
	// those of Kueue, Kyverno, Istio and VPA so that we see their changes.
	WebhookPath              = "/mutate-v1-pod"
	WebhookName              = "pods." + Domain
	WebhookConfigurationName = "zz-gpu-binpacker"

	// LabelName and LabelComponent, with these values, are on the pods of the webhook:
	// what its Service selects. A replica knows the others by them.
	LabelName           = "app.kubernetes.io/name"
	WebhookPodName      = "gpu-binpacker"
	LabelComponent      = "app.kubernetes.io/component"
	WebhookPodComponent = "webhook"

	// SystemNamespace is where the product itself is installed.
	SystemNamespace = "gpu-binpacker-system"
)

// Values of AnnotationSteering.
const (
	SteeringRanked = "ranked"
	SteeringLate   = "late"
	SteeringDryRun = "dry-run"
)
