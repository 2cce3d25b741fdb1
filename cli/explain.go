package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-binpacker/gpu-binpacker/cli/explain"
	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	cluster       clusterFlags
	configuration configurationFlag
	state         stateFlags
	// file is a path; "-" is standard input.
	file   string
	output choice[output]
	// all shows every candidate and every node that is left out.
	all bool
	// clients is how to reach the cluster: that of the flags, but for tests.
	clients func() (kubernetes.Interface, error)
}

func newExplain() *cobra.Command { return (&explainOptions{}).command() }

func (o *explainOptions) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [POD]",
		Short: "Show where a pod goes and why",
		Long: `Show, for an existing pod or one in a file, which nodes can take it, in the order
in which they are to be filled, which are left out and why, what is decided and
the exact patch. Nothing is created or changed.

For an existing pod it also shows what was decided when it was created and where
it landed. What is decided now is decided as if it were new: without its own
share of its node.

Columns: GPUS used/allocatable, SCORE 100*used/allocatable, LEFT the GPUs free
afterwards, WEIGHT that of the preferred term, POINTS the predicted total of the
scheduler, USER the weights of the pod's own preferred terms that match. The
prediction has no spreading and no inter-pod affinity in it. -o wide shows the
points by plugin, and the patch.

A file holds a Pod, or a Deployment, ReplicaSet, StatefulSet, Job, CronJob or
DaemonSet, whose pod template is taken. What other admission plugins and webhooks
add (LimitRange defaults, the overhead of a RuntimeClass) is not known here.`,
		Example: `  gpu-binpacker explain train-0 -n team-a
  gpu-binpacker explain -f job.yaml -o wide
  gpu-binpacker explain -f job.yaml --state cluster.yaml
  gpu-binpacker explain --example
  kubectl get deployment infer -o yaml | gpu-binpacker explain -f -`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.output = choice[output]{outputTable, []output{outputTable, outputWide, outputJSON, outputYAML}}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "filename", "f", "", `file with a Pod or a workload; "-" for standard input`)
	o.output.bind(cmd, "output", "o", "table, wide, json or yaml")
	flags.BoolVar(&o.all, "all", false, "show every candidate, and each node that is left out")
	o.cluster.bind(cmd)
	o.state.bind(cmd)
	o.configuration.bind(cmd)
	if o.clients == nil {
		o.clients = o.cluster.clients
	}
	return cmd
}

// run is the command, in order.
func (o *explainOptions) run(ctx context.Context, args []string, in io.Reader, out, notes io.Writer) error {
	name, err := o.check(args)
	if err != nil {
		return err
	}
	w, err := observe(ctx, o.clients, &o.configuration, &o.state, in, notes)
	if err != nil {
		return err
	}
	s, err := o.subject(ctx, w, name, in)
	if err != nil {
		return err
	}
	explanation, err := explain.New(ctx, explain.Cluster{State: w.state, Config: w.cfg, Uninstalled: w.uninstalled}, s)
	if err != nil {
		return err
	}
	if o.output.value == outputJSON || o.output.value == outputYAML {
		return writeObject(out, o.output.value, explanation)
	}
	view := explain.View{Out: out, Screen: terminal.ScreenOf(out), Wide: o.output.value == outputWide, All: o.all}
	view.Print(explanation)
	return nil
}

// check returns the name of the pod in the arguments, empty with a file.
func (o *explainOptions) check(args []string) (string, error) {
	switch {
	case len(args) == 0 && o.file == "" && !o.state.example:
		return "", errors.New("no pod to explain: give the name of a pod, or -f FILE")
	case len(args) > 0 && o.file != "":
		return "", fmt.Errorf("both a pod (%s) and -f %s: give one of them", args[0], o.file)
	case o.file == "-" && o.state.path == "-":
		return "", errors.New("-f - and --state - both read standard input: give a file for one of them")
	case len(args) == 0:
		return "", nil
	}
	kind, name, found := strings.Cut(args[0], "/")
	if !found {
		return kind, nil
	}
	if !slices.Contains([]string{"pod", "pods", "po"}, kind) || name == "" {
		return "", fmt.Errorf("%s: only pods are named, as POD or pod/POD; for a workload: kubectl get %s -o yaml | gpu-binpacker explain -f -", args[0], args[0])
	}
	return name, nil
}

// subject returns the pod to explain: the named one, that of the file, or the one that
// comes with the example.
func (o *explainOptions) subject(ctx context.Context, w *observed, name string, in io.Reader) (*explain.Subject, error) {
	switch {
	case o.file != "":
		return o.fromFile(w.cfg.Resources, in)
	case name == "":
		return explain.Example(), nil
	}
	namespace, err := o.namespaceIn()
	if err != nil {
		return nil, err
	}
	pod, err := w.pod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return explain.Existing(pod), nil
}

// namespaceIn is the namespace of -n, of the context or, without a cluster, default.
func (o *explainOptions) namespaceIn() (string, error) {
	if !o.state.given() {
		return o.cluster.namespace()
	}
	if n := o.cluster.overrides.Context.Namespace; n != "" {
		return n, nil
	}
	return metav1.NamespaceDefault, nil
}

// fromFile reads the pod of -f and gives it a namespace.
func (o *explainOptions) fromFile(gpus config.Resources, in io.Reader) (*explain.Subject, error) {
	name := o.file
	var data []byte
	var err error
	if name == "-" {
		name = "standard input"
		data, err = io.ReadAll(in)
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	s, err := explain.FromFile(name, data, gpus)
	if err != nil {
		return nil, err
	}
	given := o.cluster.overrides.Context.Namespace
	switch {
	case s.Pod.Namespace == "":
		if s.Pod.Namespace, err = o.namespaceIn(); err != nil {
			return nil, err
		}
	case given != "" && given != s.Pod.Namespace:
		return nil, fmt.Errorf("%s: metadata.namespace is %q, but -n says %q: leave out -n or change the file", s.Source, s.Pod.Namespace, given)
	}
	return s, nil
}
