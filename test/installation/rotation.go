package installation

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rotationPeriod is how long the API server keeps using the connections it has.
const rotationPeriod = 3 * time.Second

// serviceNames are two names of this machine. The API server resolves the
// Service for every request and keeps a pool of connections per name.
var serviceNames = []string{"localhost", "127.0.0.1"}

// rotate lets every replica serve. The API server keeps its connections to a
// webhook alive, so that requests one after another all go to the replica that
// got the first, while only requests at the same time are spread. And a proxy
// that closes a connection can always hit a request that was just being written:
// a lost call.
//
// So the connections are taken out of use before they are closed: the Service
// changes between two names, the API server opens new connections for the new
// name, which the proxy spreads, and those for the old name are closed when the
// last call on them must have ended. No call is ever interrupted.
func (i *Installation) rotate(ctx context.Context) {
	timeout := 10 * time.Second // the API server's default
	if seconds := i.bundle.webhook.Webhooks[0].TimeoutSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	// Half a second for the API server to notice the change.
	settle := timeout + 500*time.Millisecond
	for n := 1; pause(ctx, rotationPeriod); n++ {
		renamed := time.Now()
		if err := i.rename(ctx, serviceNames[n%len(serviceNames)]); err != nil {
			continue // the API server is down, so no connection is stuck
		}
		if pause(ctx, settle) {
			i.proxy.closeUnused(renamed, timeout)
		}
	}
}

// rename points the webhook's Service to another name.
func (i *Installation) rename(ctx context.Context, name string) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"externalName": name}})
	if err != nil {
		return err
	}
	reference := i.bundle.webhook.Webhooks[0].ClientConfig.Service
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, Name: reference.Name}}
	return i.cp.Client().Patch(ctx, service, client.RawPatch(types.MergePatchType, patch))
}

// pause returns true after the duration, or false when ctx ends before.
func pause(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
