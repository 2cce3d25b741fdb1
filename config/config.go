package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Configuration is the content of the configuration file. Every field has a
// default (see Default); a file only needs what differs.
type Configuration struct {
	metav1.TypeMeta `json:",inline"`

	// Mode is Enforce (default) or DryRun. DryRun decides, logs, counts and
	// annotates, but leaves the pod's spec and labels alone and reserves nothing.
	Mode Mode `json:"mode"`
	// Resources says which resource names are GPUs.
	Resources Resources `json:"resources"`
	// SchedulerNames are the values of spec.schedulerName we steer for. Pods of
	// other schedulers are left alone but counted. Default: "default-scheduler";
	// an empty schedulerName means default-scheduler.
	SchedulerNames []string `json:"schedulerNames"`
	// Ranking is how candidate nodes are ordered.
	Ranking Ranking `json:"ranking"`
	// Weights is how the order becomes weights of preferred terms.
	Weights Weights `json:"weights"`
	// Scheduler describes the scheduler that will place the pods.
	Scheduler Scheduler `json:"scheduler"`
	// Spreading is how we deal with wishes to spread pods.
	Spreading Spreading `json:"spreading"`
	// LateSteering is what pods get that nothing fits at admission.
	LateSteering LateSteering `json:"lateSteering"`
	// Nodes excludes nodes from the ranking.
	Nodes Nodes `json:"nodes"`
	// InFlight bounds how long pods that are not bound yet count on a node.
	InFlight InFlight `json:"inFlight"`
	// Annotations is Full (default: with the ranking) or Target (only what the
	// accounting needs; the ranking shows node names and free GPUs to everyone
	// who may read the pod).
	Annotations Annotations `json:"annotations"`
	// Server is how the process listens and protects itself.
	Server Server `json:"server"`
	// Log is how it logs.
	Log Log `json:"log"`
}

// Mode is whether pods are changed.
type Mode string

// Values of Mode.
const (
	ModeEnforce Mode = "Enforce"
	ModeDryRun  Mode = "DryRun"
)

// Annotations is how much of a decision is written onto the pod.
type Annotations string

// Values of Annotations.
const (
	AnnotationsFull   Annotations = "Full"
	AnnotationsTarget Annotations = "Target"
)

// Ranking configures the order of the candidate nodes.
type Ranking struct {
	// Strategy is BestFit (default) or MostAllocated.
	Strategy Strategy `json:"strategy"`
	// EmptyNodes is which of several nodes without GPU pods is opened first:
	// SmallestFirst (default) keeps large nodes for large pods.
	EmptyNodes EmptyNodes `json:"emptyNodes"`
}

// Strategy names a ranking rule; scoring/ranking.go has their definitions.
type Strategy string

// Values of Strategy.
const (
	// StrategyBestFit prefers nodes in use, then the fewest GPUs left over.
	StrategyBestFit Strategy = "BestFit"
	// StrategyMostAllocated prefers the highest 100*allocated/allocatable.
	StrategyMostAllocated Strategy = "MostAllocated"
)

// EmptyNodes is the order among nodes that run no GPU pod.
type EmptyNodes string

// Values of EmptyNodes.
const (
	SmallestFirst EmptyNodes = "SmallestFirst"
	LargestFirst  EmptyNodes = "LargestFirst"
)

// What a configuration may allow at most: terms in order, and terms behind them.
const (
	mostHeadTerms = 100
	mostTailTerms = 100
	// MostTerms is how many terms a replica adds to a pod at most, whatever its
	// configuration: a pod with more has some of somebody else.
	MostTerms = mostHeadTerms + mostTailTerms
)

// Weights configures the preferred node-affinity terms.
type Weights struct {
	// Weighting is Chain (default) or Equal. Chain makes the scheduler fill the
	// listed nodes in order. Equal gives all listed nodes one weight: for
	// clusters whose descheduler evicts pods that are not on the node with their
	// highest preference.
	Weighting Weighting `json:"weighting"`
	// MaxTerms is the most nodes that are listed in order, 1 to 100. Default 16:
	// with the defaults of kube-scheduler weights fall by about a quarter per
	// step, so that there can hardly be more; and a burst that two replicas
	// decide about before they see each other's pods runs past the end of a
	// shorter list (see TestTwoReplicasBurst).
	MaxTerms int `json:"maxTerms"`
	// TailTerms is the most further nodes that are listed behind them, all with
	// one low weight, 0 to 100. They are added only where the scheduler examines
	// a part of the feasible nodes, for each stretch of its node order, of half that
	// part's length, that has too few listed nodes: one, or up to three as long as
	// there are not more of them than nodes in order. Default 40 = 2/0.05: the
	// scheduler examines at least 5 percent.
	TailTerms int `json:"tailTerms"`
	// Margin is how many points of the scheduler's total score a better node
	// keeps ahead of a worse one, 1 to 100. Default 2: one against equality and
	// one against the rounding of the scheduler's integer scores.
	Margin int64 `json:"margin"`
}

// Weighting is how the order of nodes becomes weights.
type Weighting string

// Values of Weighting.
const (
	WeightingChain Weighting = "Chain"
	WeightingEqual Weighting = "Equal"
)

// Spreading configures the treatment of spreading.
type Spreading struct {
	// Default is Neutralize (default) or Keep. The scheduler spreads pods that
	// belong to a ReplicaSet, StatefulSet or Service and state no constraint of
	// their own; Neutralize adds a constraint without effect, which switches
	// that off for the pods we steer.
	Default DefaultSpreading `json:"default"`
	// UserConstraints is Respect (default: pods with topology spread
	// constraints or pod anti-affinity of their own are left alone) or Ignore.
	UserConstraints UserConstraints `json:"userConstraints"`
}

// DefaultSpreading is what happens to the scheduler's default spreading.
type DefaultSpreading string

// Values of DefaultSpreading.
const (
	SpreadingNeutralize DefaultSpreading = "Neutralize"
	SpreadingKeep       DefaultSpreading = "Keep"
)

// UserConstraints is what happens to pods that ask to be spread.
type UserConstraints string

// Values of UserConstraints.
const (
	UserConstraintsRespect UserConstraints = "Respect"
	UserConstraintsIgnore  UserConstraints = "Ignore"
)

// LateSteering configures the soft pod affinity for pods that have to wait.
type LateSteering struct {
	// Mode is WhenNothingFits (default), Always or Off.
	Mode LateMode `json:"mode"`
	// Scope is Namespace (default) or Cluster. Cluster makes the term reach into
	// all namespaces, which a ResourceQuota with scope
	// CrossNamespacePodAffinity may refuse, and draws waiting pods to the nodes of
	// whoever puts the label gpu-binpacker.io/late on a pod in any namespace: only
	// for clusters without such a quota whose users trust each other.
	Scope LateScope `json:"scope"`
}

// LateMode is which pods get late steering.
type LateMode string

// Values of LateMode.
const (
	LateOff             LateMode = "Off"
	LateWhenNothingFits LateMode = "WhenNothingFits"
	LateAlways          LateMode = "Always"
)

// LateScope is which pods a late-steered pod is drawn to.
type LateScope string

// Values of LateScope.
const (
	LateScopeNamespace LateScope = "Namespace"
	LateScopeCluster   LateScope = "Cluster"
)

// Nodes excludes nodes.
type Nodes struct {
	// ExcludeSelector selects nodes that are never ranked, for example those
	// whose GPUs are shared out by another system. Default: none.
	ExcludeSelector *metav1.LabelSelector `json:"excludeSelector,omitempty"`
	// RemovalTaints are the taint keys by which autoscalers and disruption
	// controllers mark nodes that are about to go. Such a node is no candidate,
	// whatever the pod tolerates. A key that ends in "/" or "-" is a prefix.
	RemovalTaints []string `json:"removalTaints"`
	// Backoff keeps pods away from nodes that refuse them.
	Backoff Backoff `json:"backoff"`
}

// Backoff says when a node is no candidate because it refused GPU pods: its kubelet
// (UnexpectedAdmissionError, OutOf..., TopologyAffinityError), or the runtime, which could
// not start their containers (StartError). A broken device plugin or driver fails every
// pod within seconds, and the node looks free again.
type Backoff struct {
	// Failures is how many refused pods in a row begin a back-off, with no GPU pod
	// started on the node since the first of them, 1 to 1000; 0 switches it off. Those
	// of one namespace begin one for its pods, those of two for everybody's. Default 3:
	// one or two happen when a pod's end and the next one's start cross.
	Failures int `json:"failures"`
	// Window has no effect: refusals in a row count at whatever rate they come. 1s to
	// 1h. Default 1m.
	Window metav1.Duration `json:"window"`
	// Initial is how long the first back-off lasts, 1s to 24h. Each one that
	// begins soon after the last, within its length, is twice as long. Default 1m.
	Initial metav1.Duration `json:"initial"`
	// Max is how long one lasts at most, Initial to 24h. Default 15m.
	Max metav1.Duration `json:"max"`
}

// InFlight bounds the accounting of pods between admission and binding.
type InFlight struct {
	// TargetMaxAge is how long a pending pod counts on the node its target
	// annotation names, from its creation. Default 60s; the scheduler binds
	// within seconds, and older targets are stale.
	TargetMaxAge metav1.Duration `json:"targetMaxAge"`
	// ReservationTTL is how long a decision counts before its pod is seen in the
	// watch. Default 5s: several times the usual watch delay, and as short as a
	// pod that was refused later (quota, validation) should hold a GPU.
	ReservationTTL metav1.Duration `json:"reservationTTL"`
}

// Default returns the configuration that applies where a file says nothing.
func Default() Configuration {
	return Configuration{
		TypeMeta:       metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Mode:           ModeEnforce,
		Resources:      defaultResources(),
		SchedulerNames: []string{"default-scheduler"},
		Ranking:        Ranking{Strategy: StrategyBestFit, EmptyNodes: SmallestFirst},
		Weights:        Weights{Weighting: WeightingChain, MaxTerms: 16, TailTerms: 40, Margin: 2},
		Scheduler:      defaultScheduler(),
		Spreading:      Spreading{Default: SpreadingNeutralize, UserConstraints: UserConstraintsRespect},
		LateSteering:   LateSteering{Mode: LateWhenNothingFits, Scope: LateScopeNamespace},
		Nodes:          Nodes{RemovalTaints: defaultRemovalTaints(), Backoff: defaultBackoff()},
		InFlight: InFlight{
			TargetMaxAge:   metav1.Duration{Duration: time.Minute},
			ReservationTTL: metav1.Duration{Duration: 5 * time.Second},
		},
		Annotations: AnnotationsFull,
		Server:      defaultServer(),
		Log:         Log{Level: LogInfo, Format: LogJSON},
	}
}

func defaultBackoff() Backoff {
	return Backoff{
		Failures: 3,
		Window:   metav1.Duration{Duration: time.Minute},
		Initial:  metav1.Duration{Duration: time.Minute},
		Max:      metav1.Duration{Duration: 15 * time.Minute},
	}
}

// defaultRemovalTaints lists the marks of the common autoscalers and disruption
// controllers, as their sources define them.
func defaultRemovalTaints() []string {
	return []string{
		"ToBeDeletedByClusterAutoscaler",              // Cluster Autoscaler: being removed
		"DeletionCandidateOfClusterAutoscaler",        // Cluster Autoscaler: unneeded
		"karpenter.sh/disrupted",                      // Karpenter 1.x
		"karpenter.sh/disruption",                     // Karpenter before 1.0
		"karpenter.sh/unregistered",                   // Karpenter: not yet taken over
		"cloud.google.com/impending-node-termination", // GKE
		"aws-node-termination-handler/",               // AWS node termination handler
		"node.kubernetes.io/out-of-service",           // non-graceful shutdown
		"node.cloudprovider.kubernetes.io/shutdown",   // cloud node lifecycle controller
	}
}
