package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
)

// synced is what the command watch prints when it has seen everything.
const synced = "synced"

// watch is the command watch: what any controller that follows all nodes and pods
// pays at least. Shared informers of client-go get them as protobuf, decode them and
// keep their names only; nothing is done with them.
func watch(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("watch", flag.ExitOnError)
	kubeconfig := set.String("kubeconfig", "", "leads to the API server")
	if err := set.Parse(args); err != nil {
		return err
	}
	client, err := newClient(*kubeconfig)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(onlyName))
	factory.Core().V1().Nodes().Informer()
	factory.Core().V1().Pods().Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("%s were not listed", kind)
		}
	}
	fmt.Println(synced)
	<-ctx.Done()
	return nil
}

func onlyName(object any) (any, error) {
	var meta *metav1.ObjectMeta
	switch o := object.(type) {
	case *corev1.Node:
		meta = &o.ObjectMeta
	case *corev1.Pod:
		meta = &o.ObjectMeta
	default:
		return object, nil // a tombstone
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: meta.Namespace, Name: meta.Name, ResourceVersion: meta.ResourceVersion,
	}}, nil
}

// startWatch starts this program as a bare watch. It ends with stop.
func startWatch(ctx context.Context, kubeconfig string) (pid int, stop func() error, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	cmd := exec.Command(self, "watch", "-kubeconfig", kubeconfig)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	stop = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return err
	}
	if err := waitForLine(ctx, out, synced); err != nil {
		return 0, nil, errors.Join(fmt.Errorf("starting a bare watch: %w", err), stop())
	}
	return cmd.Process.Pid, stop, nil
}

func waitForLine(ctx context.Context, in io.Reader, want string) error {
	read := make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		if err == nil && line != want+"\n" {
			err = fmt.Errorf("it says %q", line)
		}
		read <- err
	}()
	select {
	case err := <-read:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
