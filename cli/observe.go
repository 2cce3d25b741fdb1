package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

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

// stateFlags say that a command looks at a cluster that is not there: one in a file, or
// the one that is built in.
type stateFlags struct {
	// path is a state file; "-" is standard input.
	path string
	// example: the built-in cluster.
	example bool
}

// bind adds the flags to a command that has those of a real cluster.
func (f *stateFlags) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.path, "state", "", `state file to read instead of a cluster, as report --save-state writes it; "-" for standard input`)
	flags.BoolVar(&f.example, "example", false, "look at the cluster that is built in, of 303 made-up nodes, instead of a real one")
	cmd.MarkFlagsMutuallyExclusive("state", "example")
	for _, flag := range []string{clientcmd.RecommendedConfigPathFlag, clientcmd.FlagContext, clientcmd.FlagImpersonate, clientcmd.FlagImpersonateGroup} {
		cmd.MarkFlagsMutuallyExclusive("state", flag)
		cmd.MarkFlagsMutuallyExclusive("example", flag)
	}
}

// given tells whether no real cluster is to be read.
func (f *stateFlags) given() bool { return f.example || f.path != "" }

// load returns the cluster.
func (f *stateFlags) load(in io.Reader) (*state.State, error) {
	if f.example {
		return state.Example(), nil
	}
	s, err := state.Load(f.path, in)
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	return s, nil
}

// source names where the cluster is from.
func (f *stateFlags) source() string {
	if f.example {
		return "the built-in example"
	}
	return "state file " + f.path
}
