package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/index"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/watch"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/metrics"
	"github.com/gpu-binpacker/gpu-binpacker/webhook/server"
)

func newServe() *cobra.Command {
	var configPath, kubeconfig string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the webhook server",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := config.Load(configPath, cmd.Flags())
			if err != nil {
				return err
			}
			restConfig, err := restConfigFrom(kubeconfig)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), cfg, restConfig, ownNamespace(kubeconfig))
		},
	}
	defaults := config.Default()
	config.BindFlags(cmd.Flags(), &defaults)
	cmd.Flags().StringVar(&configPath, "config", "", "configuration file; the defaults when not given")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; the service account of the pod, $KUBECONFIG or ~/.kube/config when not given")
	return cmd
}

func restConfigFrom(path string) (*rest.Config, error) {
	if path == "" {
		restConfig, err := ctrl.GetConfig()
		if err != nil {
			return nil, fmt.Errorf("finding a cluster: %w", err)
		}
		return restConfig, nil
	}
	restConfig, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig: %w", err)
	}
	return restConfig, nil
}

// ownNamespace is where this process' pod runs, or what the kubeconfig file says for a
// process that is no pod.
func ownNamespace(kubeconfig string) string {
	loading := clientcmd.NewDefaultClientConfigLoadingRules()
	loading.ExplicitPath = kubeconfig
	namespace, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(loading, &clientcmd.ConfigOverrides{}).Namespace()
	if err != nil {
		return "" // other replicas are known by their decisions then
	}
	return namespace
}

// serve runs the webhook server until the context ends. namespace is the process' own.
func serve(ctx context.Context, cfg config.Configuration, restConfig *rest.Config, namespace string) error {
	log, err := newLogger(cfg.Log)
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	log.Info("Starting", "version", Version(), "configuration", cfg)
	ix, err := index.New(cfg, nil)
	if err != nil {
		return err
	}
	ix.SetOwnNamespace(namespace)
	ix.Observe(observersOf(log.WithName("index")))
	mgr, err := newManager(restConfig, log)
	if err != nil {
		return err
	}
	if err := feedIndex(mgr, ix, log.WithName("index")); err != nil {
		return err
	}
	metrics.RegisterIndex(ctrlmetrics.Registry, ix)
	requests := metrics.New(ctrlmetrics.Registry)
	webhookLog := log.WithName("webhook")
	if err := mgr.Add(metrics.NewCallCheck(ctrlmetrics.Registry, requests, ix, webhookLog)); err != nil {
		return fmt.Errorf("adding the check for calls: %w", err)
	}
	scorer := scoring.NewScorer(cfg, ix)
	if err := followVersion(ctx, mgr, scorer.Version(), cfg.Scheduler, log.WithName("scheduler")); err != nil {
		return err
	}
	metrics.RegisterSchedulerVersion(ctrlmetrics.Registry, scorer.Version())
	handler := webhook.NewHandler(cfg, withFaults(scorer), requests, webhookLog)
	reviews := server.New(handler, requests, webhookLog, cfg.Server.MaxConcurrentRequests, cfg.Server.DecisionTimeout.Duration)
	listener := server.NewListener(cfg.Server, reviews, webhookLog)
	metrics.RegisterCertificate(ctrlmetrics.Registry, listener.CertificateExpiry)
	if err := mgr.Add(listener); err != nil {
		return fmt.Errorf("adding the webhook server: %w", err)
	}
	if err := addPorts(mgr, cfg.Server, ix, listener, log.WithName("ports")); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	log.Info("Stopped")
	return nil
}

// newLogger returns a zap logger behind logr. Stack traces are left out: a panic
// logs its own.
func newLogger(cfg config.Log) (logr.Logger, error) {
	zapConfig := zap.NewProductionConfig()
	zapConfig.DisableStacktrace = true
	zapConfig.Sampling = nil
	if cfg.Format == config.LogConsole {
		zapConfig.Encoding = "console"
		zapConfig.EncoderConfig = zap.NewDevelopmentEncoderConfig()
	}
	if cfg.Level == config.LogDebug {
		zapConfig.Level.SetLevel(zap.DebugLevel)
	}
	zapLogger, err := zapConfig.Build()
	if err != nil {
		return logr.Logger{}, fmt.Errorf("building the logger: %w", err)
	}
	return zapr.NewLogger(zapLogger), nil
}

// observersOf log what happens in the index.
func observersOf(log logr.Logger) index.Observers {
	return index.Observers{Landed: logLanding(log), Negative: logNegative(log), ClockAhead: logClockAhead(log)}
}

// logClockAhead logs that the clocks differ. It is allowed for wherever times are compared,
// but whoever compares times of logs should know.
func logClockAhead(log logr.Logger) func(time.Duration) {
	return func(ahead time.Duration) {
		log.Info("The clock of this machine differs from the API server's; set one of them right", "ahead", ahead.Round(time.Second).String())
	}
}

// logLanding logs, at debug level as all lines that name pods, where steered pods went.
func logLanding(log logr.Logger) func(index.Landed) {
	return func(l index.Landed) {
		log.V(1).Info("Landed", "namespace", l.Namespace, "pod", l.Name, "node", l.Node, "target", l.Target,
			"where", l.Where, "waited", l.Waited.Round(time.Millisecond).String())
	}
}

// logNegative logs a usage below nothing, which only a bug can bring about.
func logNegative(log logr.Logger) func(string) {
	return func(node string) {
		log.Error(nil, "More was given back of a node than was taken; please report this bug", "node", node)
	}
}

// newManager returns a manager without ports: those of ours are added by addPorts.
func newManager(restConfig *rest.Config, log logr.Logger) (manager.Manager, error) {
	mgr, err := ctrl.NewManager(restConfig, manager.Options{
		Logger: log, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	return mgr, nil
}

// feedIndex lets the index follow the cluster while the manager runs.
func feedIndex(mgr manager.Manager, ix *index.Index, log logr.Logger) error {
	clients, err := newClients(mgr)
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		restore := collectOften()
		watch.Follow(klog.NewContext(ctx, log), clients, ix, func() {
			// Decoding all that exists leaves much behind, and takes as much memory as
			// the process ever needs. Later there is no need for it.
			debug.FreeOSMemory()
			restore()
			size := ix.Size()
			log.Info("Synced", "nodes", size.Nodes, "pods", size.Pods)
		}, nil)
		return nil
	}))
}

// listingGCPercent is GOGC while all objects are listed.
const listingGCPercent = 100

// collectOften keeps the heap small while all objects are listed, of which most is
// garbage a moment later. Afterwards GOGC may be more: a collection goes through the
// whole index then, and finds little.
func collectOften() (restore func()) {
	usual := debug.SetGCPercent(listingGCPercent)
	restore = func() { debug.SetGCPercent(usual) }
	if usual >= 0 && usual < listingGCPercent {
		restore()
	}
	return restore
}

// newClients returns clients that share the manager's connections.
func newClients(mgr manager.Manager) (kubernetes.Interface, error) {
	restConfig := rest.CopyConfig(mgr.GetConfig())
	restConfig.ContentType = runtime.ContentTypeProtobuf
	clients, err := kubernetes.NewForConfigAndClient(restConfig, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating the clients: %w", err)
	}
	return clients, nil
}

// addPorts serves metrics, and health: the process is ready when the index is synced and
// TLS is served, and live as long as it answers.
func addPorts(mgr manager.Manager, cfg config.Server, ix *index.Index, listener *server.Listener, log logr.Logger) error {
	indexSynced := func(*http.Request) error {
		if !ix.Synced() {
			return errors.New("index not synced")
		}
		return nil
	}
	health, err := server.NewHealthPort(cfg, map[string]healthz.Checker{"index": indexSynced, "webhook": listener.Ready}, log)
	if err != nil {
		return err
	}
	metricsPort, err := server.NewMetricsPort(cfg, mgr.GetConfig(), mgr.GetHTTPClient(), log)
	if err != nil {
		return err
	}
	for _, port := range []*manager.Server{health, metricsPort} {
		if port == nil {
			continue
		}
		if err := mgr.Add(port); err != nil {
			return fmt.Errorf("adding the %s server: %w", port.Name, err)
		}
	}
	return nil
}
