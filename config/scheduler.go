package config

// Scheduler is the model of the scheduler that will place the pods: everything
// it adds to a node's total besides our terms. The defaults are those of
// kube-scheduler; a cluster with another profile says so here, else steering is
// computed against the wrong competition.
type Scheduler struct {
	// KubernetesVersion is "major.minor", for a scheduler of another version than the
	// API server. Default: none, which is right nearly everywhere: the version of the
	// API server counts, found at the start and followed while it is upgraded.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// PluginWeights are the weights of the score plugins.
	PluginWeights PluginWeights `json:"pluginWeights"`
	// ScoringStrategy is that of NodeResourcesFit.
	ScoringStrategy ScoringStrategy `json:"scoringStrategy"`
	// PercentageOfNodesToScore is the scheduler's setting of that name, 0 to 100.
	// Default 0: from 50 percent down to 5, by the number of nodes.
	PercentageOfNodesToScore int64 `json:"percentageOfNodesToScore"`
	// DefaultConstraints is System (default: the built-in spreading) or List.
	// With List an administrator has set constraints for all pods, perhaps hard
	// ones, which a constraint of ours would switch off, so none is added.
	DefaultConstraints DefaultConstraints `json:"defaultConstraints"`
}

// PluginWeights are the weights of the scheduler's score plugins, 0 to 100; 0
// means that the plugin is disabled. NodeAffinity must be at least 1.
type PluginWeights struct {
	// NodeAffinity is the weight of that score plugin, 1 to 100.
	NodeAffinity int64 `json:"nodeAffinity"`
	// TaintToleration is the weight of that plugin, 0 (disabled) to 100.
	TaintToleration int64 `json:"taintToleration"`
	// PodTopologySpread is the weight of that plugin, 0 to 100.
	PodTopologySpread int64 `json:"podTopologySpread"`
	// InterPodAffinity is the weight of that plugin, 0 to 100.
	InterPodAffinity int64 `json:"interPodAffinity"`
	// NodeResourcesFit is the weight of that plugin, 0 to 100.
	NodeResourcesFit int64 `json:"nodeResourcesFit"`
	// BalancedAllocation is the weight of that plugin (NodeResourcesBalancedAllocation),
	// 0 to 100.
	BalancedAllocation int64 `json:"balancedAllocation"`
	// ImageLocality is the weight of that plugin, 0 to 100.
	ImageLocality int64 `json:"imageLocality"`
}

// ScoringStrategy is the scoringStrategy of NodeResourcesFitArgs.
type ScoringStrategy struct {
	// Type is LeastAllocated (default), MostAllocated or RequestedToCapacityRatio.
	Type ScoringStrategyType `json:"type"`
	// Resources are the resources scored, with weights 1 to 100. Default: cpu
	// and memory, 1 each.
	Resources []ResourceWeight `json:"resources"`
	// Ratio is what only RequestedToCapacityRatio needs.
	Ratio RequestedToCapacityRatio `json:"requestedToCapacityRatio,omitzero"`
}

// RequestedToCapacityRatio is the field of that name of NodeResourcesFitArgs'
// scoringStrategy.
type RequestedToCapacityRatio struct {
	// Shape are the points between which the score of a resource is linear, from
	// the lowest utilization to the highest; outside it is that of the nearest
	// point. At least one if type is RequestedToCapacityRatio, else none.
	Shape []UtilizationShapePoint `json:"shape"`
}

// UtilizationShapePoint says how a resource scores at one utilization.
type UtilizationShapePoint struct {
	// Utilization is what is requested of the node, in percent, 0 to 100.
	Utilization int64 `json:"utilization"`
	// Score is 0 to 10.
	Score int64 `json:"score"`
}

// ResourceWeight is one resource of a scoring strategy.
type ResourceWeight struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
}

// ScoringStrategyType is how NodeResourcesFit scores.
type ScoringStrategyType string

// Values of ScoringStrategyType.
const (
	SchedulerLeastAllocated           ScoringStrategyType = "LeastAllocated"
	SchedulerMostAllocated            ScoringStrategyType = "MostAllocated"
	SchedulerRequestedToCapacityRatio ScoringStrategyType = "RequestedToCapacityRatio"
)

// DefaultConstraints is the defaultingType of PodTopologySpreadArgs.
type DefaultConstraints string

// Values of DefaultConstraints.
const (
	ConstraintsSystem DefaultConstraints = "System"
	ConstraintsList   DefaultConstraints = "List"
)

// defaultScheduler is kube-scheduler's default profile. Weights: k8s.io/kubernetes
// pkg/scheduler/apis/config/v1/default_plugins.go.
func defaultScheduler() Scheduler {
	return Scheduler{
		PluginWeights: PluginWeights{
			NodeAffinity:       2,
			TaintToleration:    3,
			PodTopologySpread:  2,
			InterPodAffinity:   2,
			NodeResourcesFit:   1,
			BalancedAllocation: 1,
			ImageLocality:      1,
		},
		ScoringStrategy: ScoringStrategy{
			Type:      SchedulerLeastAllocated,
			Resources: []ResourceWeight{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}},
		},
		DefaultConstraints: ConstraintsSystem,
	}
}
