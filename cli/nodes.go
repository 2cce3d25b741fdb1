package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/nodes"
)

// nodesOptions are the flags of nodes.
type nodesOptions struct {
	cluster       clusterFlags
	configuration configurationFlag
	state         stateFlags
	output        choice[output]
	sort          choice[order]
	// watch goes on until the context ends; ascii keeps to ASCII.
	watch, ascii bool
	// clients and watchClients are how to reach the cluster, once and for watches:
	// those of the flags, but for tests.
	clients, watchClients func() (kubernetes.Interface, error)
	// interval is the time between two looks of a watch.
	interval time.Duration
}

// order is how nodes are sorted.
type order string

const (
	orderPacked order = "packed"
	orderName   order = "name"
	orderUsed   order = "used"
	orderFree   order = "free"
)

// redrawInterval allows two new pictures a second.
const redrawInterval = 500 * time.Millisecond

func newNodes() *cobra.Command { return (&nodesOptions{interval: redrawInterval}).command() }

func (o *nodesOptions) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "Show how GPU nodes are used",
		Long: `Show, for every node that offers a configured GPU resource, how much of it is
used, with the pods that are expected there, and over all nodes how many are
empty, how full the others are and the largest pod that fits on one node.

PODS and IN FLIGHT are of the whole node: pods that hold GPUs, those of DaemonSets
and ending ones not counted, and GPUs held for pods that are not on the node yet.
STATE says why nothing is packed onto a node: excluded by the configuration, not
ready, cordoned, leaving (an autoscaler or somebody removes it), back-off (it
refused GPU pods of several namespaces a moment ago; what it refused of one keeps
out pods of that one only, which explain shows).`,
		Example: `  gpu-binpacker nodes
  gpu-binpacker nodes --watch
  gpu-binpacker nodes --sort free -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.output = choice[output]{outputTable, []output{outputTable, outputJSON, outputYAML}}
	o.sort = choice[order]{orderPacked, []order{orderPacked, orderName, orderUsed, orderFree}}
	o.output.bind(cmd, "output", "o", "table, json or yaml")
	o.sort.bind(cmd, "sort", "", "packed (fullest first), name, used or free (most first)")
	flags := cmd.Flags()
	flags.BoolVarP(&o.watch, "watch", "w", false, "go on and show changes, at most two a second, until interrupted")
	flags.BoolVar(&o.ascii, "ascii", false, "draw with ASCII; so it is anyhow when the locale is not UTF-8")
	o.cluster.bind(cmd)
	o.state.bind(cmd)
	o.configuration.bind(cmd)
	if o.clients == nil {
		o.clients, o.watchClients = o.cluster.clients, o.longClients
	}
	return cmd
}

// longClients are clients whose requests may last: watches.
func (o *nodesOptions) longClients() (kubernetes.Interface, error) {
	c, err := o.cluster.restConfig()
	if err != nil {
		return nil, err
	}
	c.Timeout = 0
	return kubernetes.NewForConfig(c)
}

func (o *nodesOptions) run(ctx context.Context, in io.Reader, out, notes io.Writer) error {
	if o.watch && o.state.given() {
		return errors.New("--watch and --state or --example: neither changes; leave out one of them")
	}
	view := nodesView{screen: terminal.ScreenOf(out), output: o.output.value, order: o.sort.value}
	view.screen.Unicode = view.screen.Unicode && !o.ascii
	if o.watch {
		return o.follow(ctx, &view, out, notes)
	}
	w, err := observe(ctx, o.clients, &o.configuration, &o.state, in, notes)
	if err != nil {
		return err
	}
	ix, err := w.state.Index(w.cfg)
	if err != nil {
		return err
	}
	text, err := view.render(newNodesReport(ix, o.sort.value))
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// NodesReport is what nodes prints with -o json and -o yaml.
type NodesReport struct {
	metav1.TypeMeta `json:",inline"`
	// Resources sum up the nodes by GPU resource, sorted by name.
	Resources []NodesOfResource `json:"resources"`
	// Nodes are those that offer a configured GPU resource, in the order of --sort.
	Nodes []ReportedNode `json:"nodes"`
}

// NodesOfResource are all nodes that offer a GPU resource.
type NodesOfResource struct {
	Resource string `json:"resource"`
	// OccupiedNodes have a pod with such GPUs or expect one; EmptyNodes do not.
	OccupiedNodes int `json:"occupiedNodes"`
	EmptyNodes    int `json:"emptyNodes"`
	// Used of Allocatable GPUs are used on all nodes.
	Used        int64 `json:"used"`
	Allocatable int64 `json:"allocatable"`
	// UsedOnOccupied of AllocatableOnOccupied are used on occupied nodes.
	UsedOnOccupied        int64 `json:"usedOnOccupied"`
	AllocatableOnOccupied int64 `json:"allocatableOnOccupied"`
	// LargestFitting is the most GPUs that are free on one node that takes pods.
	LargestFitting int64 `json:"largestFitting"`
}

// ReportedNode is a node.
type ReportedNode struct {
	Name string `json:"name"`
	// GPUs are sorted by resource name.
	GPUs []ReportedUse `json:"gpus"`
	// Pods is how many pods hold GPUs here or are expected, those of DaemonSets and
	// ending ones not counted; InFlight is how many GPUs are held for expected ones.
	Pods     int64 `json:"pods"`
	InFlight int64 `json:"inFlight"`
	// Out says why nothing is packed onto the node.
	Out nodes.Reason `json:"out,omitempty"`
}

// ReportedUse is how much of a GPU resource of a node is used.
type ReportedUse struct{ nodes.ResourceUse }

// MarshalJSON adds what is free.
func (u ReportedUse) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Resource    corev1.ResourceName `json:"resource"`
		Used        int64               `json:"used"`
		Free        int64               `json:"free"`
		Allocatable int64               `json:"allocatable"`
	}{u.Name, u.Allocated, u.Free(), u.Allocatable})
}

// newNodesReport reads an index.
func newNodesReport(ix *index.Index, by order) *NodesReport {
	r := &NodesReport{
		TypeMeta:  metav1.TypeMeta{APIVersion: config.APIVersion, Kind: "Nodes"},
		Resources: []NodesOfResource{},
		Nodes:     []ReportedNode{},
	}
	occupied := map[corev1.ResourceName]nodes.ResourceUse{}
	for _, n := range ix.Nodes() {
		node := ReportedNode{Name: n.Name, Pods: n.Pods, InFlight: n.InFlight, Out: n.Out}
		for _, g := range n.GPUs {
			node.GPUs = append(node.GPUs, ReportedUse{g})
			if n.Pods > 0 && g.Allocated > 0 {
				sum := occupied[g.Name]
				sum.Allocated += g.Allocated
				sum.Allocatable += g.Allocatable
				occupied[g.Name] = sum
			}
		}
		r.Nodes = append(r.Nodes, node)
	}
	for _, o := range ix.Occupancy() {
		sum := occupied[corev1.ResourceName(o.Resource)]
		r.Resources = append(r.Resources, NodesOfResource{
			Resource: o.Resource, OccupiedNodes: o.PartialNodes + o.FullNodes, EmptyNodes: o.EmptyNodes,
			Used: o.Allocated, Allocatable: o.Allocatable,
			UsedOnOccupied: sum.Allocated, AllocatableOnOccupied: sum.Allocatable, LargestFitting: o.LargestFitting,
		})
	}
	slices.SortStableFunc(r.Nodes, func(a, b ReportedNode) int {
		return cmp.Or(compareUses(by, a.GPUs, b.GPUs), cmp.Compare(a.Name, b.Name))
	})
	return r
}

// compareUses says which comes first. All GPU resources of a node are added up, for its
// place in the order only: names are never added up where something depends on it.
func compareUses(by order, a, b []ReportedUse) int {
	usedA, freeA, allocatableA := totals(a)
	usedB, freeB, allocatableB := totals(b)
	switch by {
	case orderUsed:
		return cmp.Compare(usedB, usedA)
	case orderFree:
		return cmp.Compare(freeB, freeA)
	case orderPacked:
		return cmp.Compare(usedB*allocatableA, usedA*allocatableB)
	default:
		return 0
	}
}

func totals(uses []ReportedUse) (used, free, allocatable int64) {
	for _, u := range uses {
		used += u.Allocated
		free += u.Free()
		allocatable += u.Allocatable
	}
	return used, free, allocatable
}
