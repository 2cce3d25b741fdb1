package main

import (
	"context"
	"flag"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// list is the command list: what any client that wants to know all nodes and pods
// does at least. It lists both at once, each in one piece from the API server's
// cache, as protobuf, decodes them and keeps nothing.
func list(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("list", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", "", "leads to the API server")
	nodes := set.Int("nodes", 0, "how many nodes there must be")
	pods := set.Int("pods", 0, "how many pods")
	if err := set.Parse(args); err != nil {
		return err
	}
	client, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	cached := metav1.ListOptions{ResourceVersion: "0"}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		all, err := client.CoreV1().Nodes().List(ctx, cached)
		if err == nil && len(all.Items) != *nodes {
			err = fmt.Errorf("%d nodes, not %d", len(all.Items), *nodes)
		}
		return err
	})
	group.Go(func() error {
		all, err := client.CoreV1().Pods("").List(ctx, cached)
		if err == nil && len(all.Items) != *pods {
			err = fmt.Errorf("%d pods, not %d", len(all.Items), *pods)
		}
		return err
	})
	return group.Wait()
}

// newClient returns a client that asks for protobuf.
func newClient(kubeconfig string) (kubernetes.Interface, error) {
	restConfig, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading -kubeconfig: %w", err)
	}
	restConfig.ContentType = runtime.ContentTypeProtobuf
	return kubernetes.NewForConfig(restConfig)
}
