package explain

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Explanation is what explain prints with -o json and -o yaml.
type Explanation struct {
	metav1.TypeMeta `json:",inline"`
	// TakenAt is when the cluster was read.
	TakenAt metav1.Time `json:"takenAt"`
	// Pod is what is explained.
	Pod Pod `json:"pod"`
	// Admission is what was decided when the pod was created and where it landed;
	// only for an existing pod.
	Admission *Admission `json:"admission,omitempty"`
	// Webhook says whether the API server would call the webhook. If not, the rest
	// is what would be decided if it did.
	Webhook Call `json:"webhook"`
	// Scheduler is by which version of kube-scheduler weights and points are computed.
	Scheduler Scheduler `json:"scheduler"`
	// Decision is what would be decided now if the pod were new.
	Decision Decision `json:"decision"`
	// Candidates can take the pod, in the order in which they are to be filled.
	Candidates []Candidate `json:"candidates"`
	// LeftOut are all other nodes, sorted by name.
	LeftOut []scoring.LeftOutNode `json:"leftOut"`
	// Patch is the JSON patch for the pod, empty when it is left as it is. The UID in
	// gpu-binpacker.io/admission is that of the request, zeros here.
	Patch []json.RawMessage `json:"patch"`
}

// Pod is the pod and what it asks for.
type Pod struct {
	Namespace string `json:"namespace"`
	// Name is empty in a pod that gets its name when it is stored.
	Name string `json:"name,omitempty"`
	// GenerateName is what such a name begins with.
	GenerateName string `json:"generateName,omitempty"`
	// Source says where the pod is from.
	Source string `json:"source"`
	// Requests are those of the pod as a whole: resource name -> quantity.
	Requests corev1.ResourceList `json:"requests"`
}

// Scheduler is the version that the model of kube-scheduler has.
type Scheduler struct {
	// KubernetesVersion is "major.minor".
	KubernetesVersion string `json:"kubernetesVersion"`
	// Source is configured (scheduler.kubernetesVersion), server (the API server's
	// version) or assumed (neither is known, so that it is the newest).
	Source scheduler.VersionSource `json:"source"`
}

// Call says whether the webhook would be called.
type Call struct {
	Called bool `json:"called"`
	// Because are the reasons why not, Fixes what to do about each.
	Because []string `json:"because,omitempty"`
	Fixes   []string `json:"fixes,omitempty"`
}

// Decision is a decision in words and numbers.
type Decision struct {
	// Steering is ranked, late, dry-run or none.
	Steering string `json:"steering"`
	// Reason says why there is no ranking: a word, as in the metrics.
	Reason steering.Reason `json:"reason,omitempty"`
	// Text is all this in a sentence.
	Text string `json:"text"`
	// Target is the node where the pod would be expected.
	Target string `json:"target,omitempty"`
	// Listed is how many nodes have a weight; the last Tail of them share one.
	Listed int `json:"listed"`
	Tail   int `json:"tail,omitempty"`
	// UnlistedMayWin: the scheduler may favour a node without a weight.
	UnlistedMayWin bool `json:"unlistedMayWin,omitempty"`
	// Predicted are the nodes with the most predicted points, sorted by name; the
	// scheduler chooses among equals at random.
	Predicted []string `json:"predicted,omitempty"`
}

// Candidate is a node that can take the pod.
type Candidate struct {
	// Rank counts from 1.
	Rank int    `json:"rank"`
	Node string `json:"node"`
	// GPUs are those that the pod asks for, before placement.
	GPUs []nodes.ResourceUse `json:"gpus"`
	// Score is 100*used/allocatable before placement and LeftAfter how many GPUs are
	// free after it, both of the tightest GPU resource.
	Score     int64 `json:"score"`
	LeftAfter int64 `json:"leftAfter"`
	// MilliCPULeftAfter and MemoryLeftAfter (bytes) are free after placement.
	MilliCPULeftAfter int64 `json:"milliCPULeftAfter"`
	MemoryLeftAfter   int64 `json:"memoryLeftAfter"`
	// Weight is that of the node's term, 1 to 100; 0 for none.
	Weight int32 `json:"weight"`
	// UserScore is the sum of the weights of the pod's own preferred terms that
	// match; SoftTaints is the number of PreferNoSchedule taints not tolerated.
	UserScore  int64 `json:"userScore,omitempty"`
	SoftTaints int64 `json:"softTaints,omitempty"`
	// Points are the predicted ones of the scheduler, for the pod with the patch, 0 to
	// 100 for each of its plugins and their sum with the configured plugin weights.
	// Spreading and inter-pod affinity are not in it.
	Points scheduler.Points `json:"points"`
}
