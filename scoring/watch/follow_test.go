package watch

import (
	"context"
	"net"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
)

// An API server that cannot be reached is told, and keeps nobody from ending.
func TestFollowEnds(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(&rest.Config{Host: "http://" + address})
	if err != nil {
		t.Fatal(err)
	}
	ix, err := index.New(config.Default(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	told, ended := make(chan error, 100), make(chan struct{})
	go func() {
		defer close(ended)
		Follow(ctx, clients, ix, func() { t.Error("synced with nobody") }, func(err error) { told <- err })
	}()
	if !received(told) {
		t.Fatal("the error was not told")
	}
	cancel()
	if !received(ended) {
		t.Fatal("it did not end")
	}
}

// received waits for a value, or for the end of the channel.
func received[T any](c <-chan T) bool {
	select {
	case <-c:
		return true
	case <-time.After(30 * time.Second):
		return false
	}
}

func TestIsUsual(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for err, want := range map[error]bool{
		apierrors.NewResourceExpired("too old"):                     true,
		apierrors.NewTooManyRequests("later", 1):                    true,
		apierrors.NewInvalid(schema.GroupKind{}, "watch", nil):      true,
		apierrors.NewForbidden(pods, "", context.Canceled):          false,
		&net.OpError{Op: "dial", Err: net.UnknownNetworkError("x")}: false,
	} {
		if got := isUsual(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
