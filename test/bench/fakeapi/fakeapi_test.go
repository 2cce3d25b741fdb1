package fakeapi

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/pager"
)

const waitTimeout = 20 * time.Second

func start(t *testing.T) (*Server, *rest.Config, *kubernetes.Clientset) {
	t.Helper()
	s, err := Start(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return s, config, client
}

func set(t *testing.T, s *Server, objects ...Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.Set(o); err != nil {
			t.Fatal(err)
		}
	}
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not after %s", what, waitTimeout)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// A real reflector, as the product's, sees all objects and changes, through a
// streamed list and through an ordinary one.
func TestReflector(t *testing.T) {
	for name, tc := range map[string]struct {
		wrap      func(cache.ListerWatcher, any) cache.ListerWatcher
		wantLists int
	}{
		"streamed": {wrap: func(lw cache.ListerWatcher, client any) cache.ListerWatcher {
			return cache.ToListWatcherWithWatchListSemantics(lw.(*cache.ListWatch), client)
		}},
		"listed": {wrap: func(lw cache.ListerWatcher, _ any) cache.ListerWatcher { return noStream{lw} }, wantLists: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, client := start(t)
			for i := range 1200 { // more than a page
				set(t, s, pod(fmt.Sprintf("p%d", i), ""))
			}
			lw := tc.wrap(cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "", fields.Everything()), client)
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			reflector := cache.NewReflector(lw, &corev1.Pod{}, store, 0)
			go reflector.RunWithContext(t.Context())
			eventually(t, "the list", func() bool { return len(store.ListKeys()) == 1200 })

			set(t, s, pod("p7", "n"), pod("new", ""))
			if err := s.Delete(pod("p8", "")); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the changes", func() bool {
				changed, _, _ := store.GetByKey("a/p7")
				_, added, _ := store.GetByKey("a/new")
				_, still, _ := store.GetByKey("a/p8")
				return changed.(*corev1.Pod).Spec.NodeName == "n" && added && !still
			})
			if got := s.Requests("list pods"); got != tc.wantLists {
				t.Errorf("%d LIST requests, want %d", got, tc.wantLists)
			}
		})
	}
}

// noStream hides that the client can stream lists.
type noStream struct{ cache.ListerWatcher }

func (noStream) IsWatchListSemanticsUnSupported() bool { return true }

// The product watches namespaces as metadata only.
func TestMetadata(t *testing.T) {
	s, config, _ := start(t)
	set(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"l": "v"}}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}})
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	informer := metadatainformer.NewFilteredMetadataInformer(client, corev1.SchemeGroupVersion.WithResource("namespaces"), "", 0, nil, nil).Informer()
	go informer.RunWithContext(t.Context())
	eventually(t, "the list", informer.HasSynced)
	set(t, s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}})
	eventually(t, "the change", func() bool { return len(informer.GetStore().List()) == 2 })
	got, _, err := informer.GetStore().GetByKey("a")
	if err != nil || got.(*metav1.PartialObjectMetadata).Labels["l"] != "v" {
		t.Error(got, err)
	}
}

func TestLists(t *testing.T) {
	s, _, client := start(t)
	for i := range 25 {
		set(t, s, pod(fmt.Sprintf("p%d", i), ""))
	}
	pods := client.CoreV1().Pods("")
	part, err := pods.List(t.Context(), metav1.ListOptions{Limit: 10})
	if err != nil || len(part.Items) != 10 || part.Continue == "" || *part.RemainingItemCount != 15 {
		t.Fatalf("%d items, %+v, %v", len(part.Items), part.ListMeta, err)
	}
	all, err := pods.List(t.Context(), metav1.ListOptions{Limit: 10, ResourceVersion: "0"})
	if err != nil || len(all.Items) != 25 {
		t.Errorf("%d items at version 0, %v", len(all.Items), err)
	}
	pages := pager.New(pager.SimplePageFunc(func(o metav1.ListOptions) (runtime.Object, error) { return pods.List(t.Context(), o) }))
	pages.PageSize = 7
	seen := map[string]bool{}
	err = pages.EachListItem(t.Context(), metav1.ListOptions{}, func(o runtime.Object) error {
		seen[o.(*corev1.Pod).Name] = true
		return nil
	})
	if err != nil || len(seen) != 25 {
		t.Errorf("%d pods in pages, %v", len(seen), err)
	}
	if _, err := pods.List(t.Context(), metav1.ListOptions{ResourceVersion: "1000"}); !apierrors.IsTimeout(err) {
		t.Errorf("a version to come: %v", err)
	}
	if _, err := pods.List(t.Context(), metav1.ListOptions{LabelSelector: "a=b"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a selector: %v", err)
	}
}

// A watch goes on where it was, and begins anew when that is forgotten.
func TestWatchVersions(t *testing.T) {
	s, _, client := start(t)
	set(t, s, pod("p", ""), pod("q", ""))
	nodes, pods := client.CoreV1().Nodes(), client.CoreV1().Pods("")
	list, err := pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set(t, s, pod("p", "n"))
	w, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != watch.Modified || e.Object.(*corev1.Pod).Name != "p" {
		t.Errorf("%s %v", e.Type, e.Object)
	}
	s.Forget()
	if _, err := pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion}); !apierrors.IsResourceExpired(err) {
		t.Errorf("a forgotten version: %v", err)
	}
	seconds := int64(1)
	short, err := nodes.Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: &seconds})
	if err != nil {
		t.Fatal(err)
	}
	defer short.Stop()
	select {
	case _, more := <-short.ResultChan():
		if more {
			t.Error("an event about no node")
		}
	case <-time.After(waitTimeout):
		t.Error("the watch did not end in time")
	}
}
