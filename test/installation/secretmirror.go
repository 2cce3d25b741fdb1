package installation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// dataLink is the symbolic link that the kubelet swaps when a Secret changes.
const dataLink = "..data"

// newSecretMirror returns a controller that keeps dir equal to a Secret.
func newSecretMirror(config *rest.Config, namespace, name, dir string) (cache.Controller, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, fmt.Errorf("mirroring Secret %s: %w", name, err)
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("mirroring Secret %s: %w", name, err)
	}
	write := func(object any) {
		if secret, ok := object.(*corev1.Secret); ok {
			// A Secret that cannot be written shows as a replica
			// that does not become ready.
			if err := writeVolume(dir, secret.Data); err != nil {
				fmt.Fprintln(os.Stderr, "mirroring Secret:", err)
			}
		}
	}
	_, controller := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(clientset.CoreV1().RESTClient(), "secrets", namespace,
			fields.OneTermEqualSelector(metav1.ObjectNameField, name)),
		ObjectType: &corev1.Secret{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    write,
			UpdateFunc: func(_, object any) { write(object) },
		},
	})
	return controller, nil
}

// writeVolume changes the files in dir the way the kubelet does: all of them at
// once, by swapping a symbolic link. Each file is a link through that one.
func writeVolume(dir string, files map[string][]byte) error {
	fresh, err := os.MkdirTemp(dir, "..version-")
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(fresh, name), content, fileMode); err != nil {
			return err
		}
	}
	link := filepath.Join(dir, dataLink)
	stale, err := os.Readlink(link)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Base(fresh), link+".tmp"); err != nil {
		return err
	}
	if err := os.Rename(link+".tmp", link); err != nil {
		return err
	}
	for name := range files {
		err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if stale != "" {
		return os.RemoveAll(filepath.Join(dir, stale))
	}
	return nil
}
