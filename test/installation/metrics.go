package installation

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

const (
	// scraperName is the ServiceAccount that reads the replicas' metrics.
	scraperName = "test-bed-scraper"
	// scrapeTimeout limits one scrape of a replica.
	scrapeTimeout = 10 * time.Second
	// servedMetric counts the answers that a replica has given.
	servedMetric = "gpu_binpacker_decisions_total"
)

// Metrics scrapes the replica.
func (r *Replica) Metrics(ctx context.Context) (controlplane.Metrics, error) {
	text, err := controlplane.Read(ctx, r.scraper, r.metricsURL)
	if err != nil {
		return nil, fmt.Errorf("scraping %s: %w", r.Name(), err)
	}
	return controlplane.ParseMetrics(text)
}

// Served returns how many requests each replica has answered since it started.
func (i *Installation) Served(ctx context.Context) ([]int, error) {
	served := make([]int, len(i.replicas))
	for n, replica := range i.replicas {
		metrics, err := replica.Metrics(ctx)
		if err != nil {
			return nil, err
		}
		served[n] = int(metrics.Sum(servedMetric, nil))
	}
	return served, nil
}

// Rejections returns how many pods the API server has refused because of our
// webhook since the API server started. It must be 0.
func (i *Installation) Rejections(ctx context.Context) (int, error) {
	return i.count(ctx, i.cp.Rejections)
}

// FailOpens returns how many pods the API server has let pass because our
// webhook could not be called, since the API server started.
func (i *Installation) FailOpens(ctx context.Context) (int, error) {
	return i.count(ctx, i.cp.FailOpens)
}

// count sums a count of the API server over our webhooks.
func (i *Installation) count(ctx context.Context, of func(context.Context, string) (int, error)) (int, error) {
	sum := 0
	for _, webhook := range i.bundle.webhook.Webhooks {
		n, err := of(ctx, webhook.Name)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// newScraper makes a ServiceAccount with the shipped role for scrapers and
// returns a client that shows its token.
func (i *Installation) newScraper(ctx context.Context) (*http.Client, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: i.bundle.namespace(), Name: scraperName}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: scraperName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: i.bundle.metricsReader()},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	for _, object := range []client.Object{account, binding} {
		if err := i.cp.Client().Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("preparing to scrape: %w", err)
		}
	}
	token, err := i.token(ctx, scraperName)
	if err != nil {
		return nil, fmt.Errorf("preparing to scrape: %w", err)
	}
	// The endpoint makes its own certificate at start.
	transport, err := rest.TransportFor(&rest.Config{
		BearerToken:     token,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	return &http.Client{Transport: transport, Timeout: scrapeTimeout}, err
}

// metricsReader is the name of the shipped ClusterRole for scrapers.
func (b *bundle) metricsReader() string {
	for _, object := range b.objects {
		if object.GetKind() == "ClusterRole" && strings.HasSuffix(object.GetName(), "metrics-reader") {
			return object.GetName()
		}
	}
	return ""
}
