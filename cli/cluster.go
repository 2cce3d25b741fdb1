package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/state"
)

// clusterFlags say which cluster a command reads, as kubectl's do.
type clusterFlags struct {
	loading   *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
}

// pageSize of lists, so that neither side holds a large cluster at once: kubectl's.
const pageSize = 500

// clientTimeout limits one request: a command should not hang on a cluster that is
// not there.
const clientTimeout = 30 * time.Second

// bind adds the flags to a command. They have kubectl's names.
func (f *clusterFlags) bind(cmd *cobra.Command) {
	f.loading = clientcmd.NewDefaultClientConfigLoadingRules()
	flags := cmd.Flags()
	flags.StringVar(&f.loading.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "kubeconfig file; $KUBECONFIG or ~/.kube/config when not given")
	flags.StringVar(&f.overrides.CurrentContext, clientcmd.FlagContext, "", "context of the kubeconfig file")
	flags.StringVarP(&f.overrides.Context.Namespace, clientcmd.FlagNamespace, "n", "", "namespace; that of the context when not given")
	flags.StringVar(&f.overrides.AuthInfo.Impersonate, clientcmd.FlagImpersonate, "", "user to impersonate")
	flags.StringArrayVar(&f.overrides.AuthInfo.ImpersonateGroups, clientcmd.FlagImpersonateGroup, nil, "group to impersonate, may be repeated")
}

func (f *clusterFlags) clientConfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.loading, &f.overrides)
}

// restConfig returns how to reach the cluster.
func (f *clusterFlags) restConfig() (*rest.Config, error) {
	c, err := f.clientConfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding a cluster: %w; give --kubeconfig or --context", err)
	}
	c.Timeout, c.UserAgent = clientTimeout, "gpu-binpacker/"+Version()
	c.QPS = -1 // the server's own fairness is limit enough for a command
	return c, nil
}

// namespace is that of -n or of the context.
func (f *clusterFlags) namespace() (string, error) {
	namespace, _, err := f.clientConfig().Namespace()
	if err != nil {
		return "", fmt.Errorf("finding the namespace: %w; give -n", err)
	}
	return namespace, nil
}

// clients returns a clientset for the cluster.
func (f *clusterFlags) clients() (kubernetes.Interface, error) {
	c, err := f.restConfig()
	if err != nil {
		return nil, err
	}
	clientset, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster: %w", err)
	}
	return clientset, nil
}

// readState reads a cluster. progress gets a line per kind of object.
func readState(ctx context.Context, clients kubernetes.Interface, progress io.Writer) (*state.State, error) {
	version, err := clients.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("asking the cluster for its version: %w", err)
	}
	namespaces, err := readNamespaces(ctx, clients)
	if err != nil {
		return nil, err
	}
	nodes, err := readNodes(ctx, clients)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "read %d nodes\n", len(nodes))
	pods, err := readPods(ctx, clients)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "read %d pods\n", len(pods))
	s := state.New(time.Now(), namespaces, nodes, pods)
	s.Version, s.ServerVersion = Version(), version.GitVersion
	return s, nil
}

// pages calls list with the options of each page until there is no further one.
func pages(what string, list func(metav1.ListOptions) (next string, err error)) error {
	options := metav1.ListOptions{Limit: pageSize}
	for {
		next, err := list(options)
		if err != nil {
			return fmt.Errorf("listing %s: %w; the command needs get and list on nodes, pods and namespaces", what, err)
		}
		if next == "" {
			return nil
		}
		options.Continue = next
	}
}

func readNamespaces(ctx context.Context, clients kubernetes.Interface) (enabled []string, err error) {
	err = pages("namespaces", func(o metav1.ListOptions) (string, error) {
		o.LabelSelector = config.LabelEnabled + "=true"
		list, err := clients.CoreV1().Namespaces().List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			enabled = append(enabled, list.Items[i].Name)
		}
		return list.Continue, nil
	})
	return enabled, err
}

func readNodes(ctx context.Context, clients kubernetes.Interface) (nodes []corev1.Node, err error) {
	err = pages("nodes", func(o metav1.ListOptions) (string, error) {
		list, err := clients.CoreV1().Nodes().List(ctx, o)
		if err != nil {
			return "", err
		}
		nodes = append(nodes, list.Items...)
		return list.Continue, nil
	})
	return nodes, err
}

func readPods(ctx context.Context, clients kubernetes.Interface) (pods []corev1.Pod, err error) {
	err = pages("pods", func(o metav1.ListOptions) (string, error) {
		list, err := clients.CoreV1().Pods(metav1.NamespaceAll).List(ctx, o)
		if err != nil {
			return "", err
		}
		pods = append(pods, list.Items...)
		return list.Continue, nil
	})
	return pods, err
}
