package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/fakeapi"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/product"
	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// Names of the systems.
const (
	ours  = "ours"
	noop  = "noop"
	naive = "naive"
	// against is another build of ours.
	against = "against"
)

// graceTime is what a load generator may take beyond the times that it was given.
const graceTime = time.Minute

// system is a running server.
type system struct {
	name string
	port int
	// dir has its certificate.
	dir string
	*controlplane.Component
}

// startSystems starts the three servers for a cluster, builds of gpu-binpacker by name
// among them. stop ends them.
func startSystems(ctx context.Context, binaries map[string]string, dir string, shape *cluster.Shape, nodes int) (systems []*system, stop func(), err error) {
	api, err := fakeapi.Start(dir)
	if err != nil {
		return nil, nil, err
	}
	changing, stopChanges := context.WithCancel(ctx)
	var changes sync.WaitGroup
	stop = func() {
		stopChanges()
		changes.Wait()
		for _, s := range systems {
			if err := s.Kill(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
		if err := api.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the fake API server:", err)
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	if err := fill(api, shape, nodes); err != nil {
		return nil, nil, err
	}
	third := naive
	if binaries[against] != "" {
		third = against
	}
	for _, name := range []string{noop, ours, third} {
		own := filepath.Join(dir, name)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		var s *system
		if binary := binaries[name]; binary != "" {
			s, err = startOurs(ctx, name, binary, own, api.Kubeconfig(), shape, nodes)
		} else {
			s, err = startOther(ctx, name, own, shape, nodes)
		}
		if s != nil {
			systems = append(systems, s)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	changes.Go(func() { changePods(changing, api, shape) })
	return systems, stop, nil
}

// changeInterval is the time between two changes of a pod: a tenth of what happens in the
// cluster of bench/scale, and enough for whatever the index does only with an event.
const changeInterval = 100 * time.Millisecond

// changePods changes a pod again and again, until the context ends.
func changePods(ctx context.Context, api *fakeapi.Server, shape *cluster.Shape) {
	var pod *corev1.Pod
	shape.Pods(0, func(p *corev1.Pod) { pod = p })
	wait.UntilWithContext(ctx, func(context.Context) {
		pod = pod.DeepCopy() // the server keeps the one that it was given
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "changed", time.Now().String())
		if err := api.Set(pod); err != nil {
			fmt.Fprintln(os.Stderr, "changing a pod:", err)
		}
	}, changeInterval)
}

// fill puts the cluster into the fake API server.
func fill(api *fakeapi.Server, shape *cluster.Shape, nodes int) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace, Labels: map[string]string{config.LabelEnabled: "true"}}}
	err := api.Set(namespace)
	for i := range nodes {
		err = errors.Join(err, api.Set(shape.Node(i)))
		shape.Pods(i, func(p *corev1.Pod) { err = errors.Join(err, api.Set(p)) })
	}
	return err
}

func startOurs(ctx context.Context, name, binary, dir, kubeconfig string, shape *cluster.Shape, nodes int) (*system, error) {
	p, err := product.New(binary, dir, kubeconfig)
	if err != nil {
		return nil, err
	}
	s := &system{name: name, port: p.Port, dir: dir, Component: p.Component}
	if err := p.Start(ctx); err != nil {
		return s, err
	}
	return s, p.CheckIndex(ctx, nodes, shape.PodCount(nodes))
}

// startOther starts this program as another webhook.
func startOther(ctx context.Context, name, dir string, shape *cluster.Shape, nodes int) (*system, error) {
	if err := product.WriteCertificate(dir); err != nil {
		return nil, err
	}
	port, err := product.FreePort()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s := &system{name: name, port: port, dir: dir, Component: controlplane.NewComponent(controlplane.ComponentOptions{
		Name: name, Path: self, Dir: dir,
		Args: []string{"serve", "-system", name, "-port", strconv.Itoa(port), "-cert-dir", dir, "-shape", shape.Name, "-nodes", strconv.Itoa(nodes)},
		Ready: func(ctx context.Context) error {
			// About whether there is an answer; nothing is sent.
			conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", address)
			if err != nil {
				return err
			}
			return conn.Close()
		},
	})}
	return s, s.Start(ctx)
}

// load runs the load generator against the server.
func (s *system) load(ctx context.Context, o loadOptions, shape *cluster.Shape, nodes int) (loadResult, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return loadResult{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return loadResult{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.warmUp+o.saturation+o.paced+graceTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{
		"load", "-system", s.name, "-port", strconv.Itoa(s.port), "-pid", strconv.Itoa(s.PID()), "-ca", filepath.Join(s.dir, "tls.crt"),
		"-shape", shape.Name, "-nodes", strconv.Itoa(nodes), "-pod", filepath.Join(root, cluster.TrainerFile),
	}, o.args()...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return loadResult{}, errors.Join(err, errors.New(strings.TrimSpace(stderr.String())))
	}
	var r loadResult
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		return loadResult{}, fmt.Errorf("reading the load generator's result: %w", err)
	}
	return r, nil
}
