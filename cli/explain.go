package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
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

// observed is what a command looks at.
type observed struct {
	state *state.State
	// source names the state's file.
	source string
	cfg    config.Configuration
	// clients reach the cluster; nil with a state file.
	clients kubernetes.Interface
	// uninstalled: the cluster has no configuration of the webhook.
	uninstalled bool
}

// observe reads the cluster, or the one of the flags if they name one.
func observe(ctx context.Context, clients func() (kubernetes.Interface, error), configuration *configurationFlag, elsewhere *stateFlags, in io.Reader, notes io.Writer) (*observed, error) {
	o := &observed{}
	var err error
	if elsewhere.given() {
		if o.state, err = elsewhere.load(in); err != nil {
			return nil, err
		}
		o.source = elsewhere.source()
	} else if o.clients, err = clients(); err != nil {
		return nil, err
	}
	if o.cfg, err = configuration.load(ctx, o.clients, notes); err != nil {
		return nil, err
	}
	if o.clients == nil {
		return o, nil
	}
	hooks := o.clients.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err = hooks.Get(ctx, config.WebhookConfigurationName, metav1.GetOptions{})
	o.uninstalled = apierrors.IsNotFound(err) // who may not read it gets no word about it
	o.state, err = readState(ctx, o.clients, io.Discard)
	return o, err
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
	explanation, err := explain(ctx, w, s)
	if err != nil {
		return err
	}
	if o.output.value == outputJSON || o.output.value == outputYAML {
		return writeObject(out, o.output.value, explanation)
	}
	view := explanationView{out: out, screen: screenOf(out), wide: o.output.value == outputWide, all: o.all}
	view.print(explanation)
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

// subject is the pod to explain.
type subject struct {
	// pod is the pod as it is created: no node, no status.
	pod *corev1.Pod
	// source says where it is from.
	source string
	// existing is the pod as it is; nil for one from a file.
	existing *corev1.Pod
}

// subject returns the pod to explain: the named one, that of the file, or the one that
// comes with the example.
func (o *explainOptions) subject(ctx context.Context, w *observed, name string, in io.Reader) (*subject, error) {
	switch {
	case o.file != "":
		return o.fromFile(w, in)
	case name != "":
		return o.existing(ctx, w, name)
	default:
		pod := state.ExamplePod()
		setDefaults(pod)
		return &subject{pod: pod, source: "a pod of the built-in example"}, nil
	}
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

func (o *explainOptions) fromFile(w *observed, in io.Reader) (*subject, error) {
	pod, source, err := podFromFile(o.file, in, w.cfg.Resources)
	if err != nil {
		return nil, err
	}
	given := o.cluster.overrides.Context.Namespace
	switch {
	case pod.Namespace == "":
		if pod.Namespace, err = o.namespaceIn(); err != nil {
			return nil, err
		}
	case given != "" && given != pod.Namespace:
		return nil, fmt.Errorf("%s: metadata.namespace is %q, but -n says %q: leave out -n or change the file", source, pod.Namespace, given)
	}
	setDefaults(pod)
	return &subject{pod: pod, source: source}, nil
}

func (o *explainOptions) existing(ctx context.Context, w *observed, name string) (*subject, error) {
	namespace, err := o.namespaceIn()
	if err != nil {
		return nil, err
	}
	pod, err := w.pod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	s := &subject{pod: asNew(pod), existing: pod}
	// What it uses now is there for it to use.
	w.state.Pods = slices.DeleteFunc(w.state.Pods, func(p corev1.Pod) bool { return p.UID == pod.UID })
	setDefaults(s.pod)
	return s, nil
}

// pod finds an existing pod.
func (w *observed) pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	if w.clients == nil {
		for i := range w.state.Pods {
			if p := &w.state.Pods[i]; p.Namespace == namespace && p.Name == name {
				return p.DeepCopy(), nil
			}
		}
		return nil, fmt.Errorf("%s has no pod %q in namespace %q; give its namespace with -n. Pods that are over are not in state files", w.source, name, namespace)
	}
	pod, err := w.clients.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no pod %q in namespace %q; give its namespace with -n", name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the pod: %w", err)
	}
	return pod, nil
}

// asNew returns the pod as it would be submitted again.
func asNew(existing *corev1.Pod) *corev1.Pod {
	pod := existing.DeepCopy()
	pod.UID, pod.ResourceVersion, pod.Generation, pod.ManagedFields = "", "", 0, nil
	pod.CreationTimestamp, pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = metav1.Time{}, nil, nil
	pod.Spec.NodeName = ""
	pod.Status = corev1.PodStatus{}
	return pod
}

// setDefaults does what the API server does before it calls webhooks, as far as
// decisions depend on it.
func setDefaults(pod *corev1.Pod) {
	pod.APIVersion, pod.Kind = "v1", "Pod"
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			r := &containers[i].Resources
			for name, limit := range r.Limits {
				if _, ok := r.Requests[name]; ok {
					continue
				}
				if r.Requests == nil {
					r.Requests = corev1.ResourceList{}
				}
				r.Requests[name] = limit
			}
		}
	}
}
