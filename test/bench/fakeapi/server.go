package fakeapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// headerTimeout and stopTimeout bound what a broken client can hold up.
const (
	headerTimeout = 30 * time.Second
	stopTimeout   = 5 * time.Second
)

// Object is what the server can keep: a Node, Pod or Namespace.
type Object interface {
	metav1.Object
	Marshal() ([]byte, error)
}

// resource is what the server knows of a resource.
type resource struct {
	kind       string
	namespaced bool
	*store
}

// Server is a running API server.
type Server struct {
	resources  map[string]*resource
	kubeconfig string
	http       *http.Server
	stopped    context.CancelFunc
	ended      chan error
	// requests are those that clients sent so far, by what they asked for.
	requests sync.Map

	mu      sync.Mutex // guards version; held while a change gets into its store
	version uint64
}

// Start starts a server without objects on a port of loopback, and writes its
// kubeconfig file into dir.
func Start(dir string) (*Server, error) {
	s := &Server{
		resources: map[string]*resource{
			"nodes":      {"Node", false, newStore()},
			"pods":       {"Pod", true, newStore()},
			"namespaces": {"Namespace", false, newStore()},
		},
		kubeconfig: filepath.Join(dir, "kubeconfig"),
		ended:      make(chan error, 1),
		version:    1,
	}
	for _, r := range s.resources {
		r.version = s.version // 0 means any version
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("starting the fake API server: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("starting the fake API server: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the fake API server: %w", err)
	}
	if err := writeKubeconfig(s.kubeconfig, "https://"+listener.Addr().String(), certificate); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	var ctx context.Context
	ctx, s.stopped = context.WithCancel(context.Background())
	s.http = &http.Server{
		Handler:           s.handler(),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13},
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0), // clients that are killed
	}
	go func() { s.ended <- s.http.ServeTLS(listener, "", "") }()
	return s, nil
}

func writeKubeconfig(path, url string, ca []byte) error {
	const name = "fake"
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	c.CurrentContext = name
	if err := clientcmd.WriteToFile(*c, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// Kubeconfig is the path of a file that leads clients to the server.
func (s *Server) Kubeconfig() string { return s.kubeconfig }

// Stop ends all watches and the server.
func (s *Server) Stop() error {
	s.stopped()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = s.http.Close()
	}
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return errors.Join(err, os.Remove(s.kubeconfig))
}

// Set creates or updates an object, whose resource version it sets.
func (s *Server) Set(o Object) error { return s.change(o, false) }

// Delete deletes an object; watches get its last state as it is given here.
func (s *Server) Delete(o Object) error { return s.change(o, true) }

func (s *Server) change(o Object, deleted bool) error {
	r, err := s.resourceOf(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	o.SetResourceVersion(strconv.FormatUint(s.version, 10))
	data, err := o.Marshal()
	if err != nil {
		return fmt.Errorf("encoding %s: %w", o.GetName(), err)
	}
	r.apply(o.GetNamespace()+"/"+o.GetName(), s.version, data, deleted)
	return nil
}

func (s *Server) resourceOf(o Object) (*resource, error) {
	switch o.(type) {
	case *corev1.Node:
		return s.resources["nodes"], nil
	case *corev1.Pod:
		return s.resources["pods"], nil
	case *corev1.Namespace:
		return s.resources["namespaces"], nil
	default:
		return nil, fmt.Errorf("the fake API server keeps no %T", o)
	}
}

// Bytes is how many objects of a resource there are, and the size of them all.
func (s *Server) Bytes(name string) (count, size int) {
	r := s.resources[name]
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, o := range r.objects {
		size += len(o.data)
	}
	return len(r.objects), size
}

// Forget makes watches from before now start anew, as after a compaction.
func (s *Server) Forget() {
	for _, r := range s.resources {
		r.mu.Lock()
		r.forget(len(r.history))
		r.mu.Unlock()
	}
}
