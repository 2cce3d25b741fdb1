package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/cli/check"
	"github.com/gpu-binpacker/gpu-binpacker/cli/schedulerconfig"
	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// schedulerConfigFlag is the flag of check that reads kube-scheduler's file.
const schedulerConfigFlag = "scheduler-config"

// checkFlags are those of the command check.
type checkFlags struct {
	cluster       clusterFlags
	configuration configurationFlag
	pre           bool
	wait          time.Duration
	output        choice[output]
	failOn        choice[check.Level]
	// schedulerConfig is a file with a KubeSchedulerConfiguration, "-" for standard
	// input; with it no cluster is checked.
	schedulerConfig string
}

func newCheck() *cobra.Command {
	f := &checkFlags{
		output: choice[output]{outputTable, []output{outputTable, outputJSON}},
		failOn: choice[check.Level]{check.Failure, []check.Level{check.Failure, check.Warning}},
	}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check whether the cluster and the installation are as they should be",
		Long: `Check whether the cluster and the installation are as they should be, and say
what to do where they are not. Each code has a section in docs/checks.md.

The exit code is 1 when a check fails, 0 with warnings. Nothing is changed: a GPU
pod is created on trial, as a dry run, in an opted-in namespace (-n chooses it).
What you may not read is skipped.

With --scheduler-config no cluster is reached. The file is the configuration of
kube-scheduler, or holds one: a ConfigMap, a machine configuration of Talos, the
SchedulerConfiguration of AKS. What is printed is the part of gpu-binpacker's
configuration that describes this scheduler, and as comments what it cannot
describe. The exit code is 1 when steering cannot work with it.`,
		Example: `  gpu-binpacker check --pre         # before you install
  gpu-binpacker check --wait 2m     # after you installed
  gpu-binpacker check -o json       # for scripts
  gpu-binpacker check --scheduler-config /etc/kubernetes/scheduler.yaml
  kubectl get schedulerconfigurations.aks.azure.com upstream -o yaml |
    gpu-binpacker check --scheduler-config -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.schedulerConfig != "" {
				return f.describeScheduler(cmd)
			}
			return f.run(cmd)
		},
	}
	f.cluster.bind(cmd)
	f.configuration.bind(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.pre, "pre", false, "check what an installation needs, before there is one")
	flags.DurationVar(&f.wait, "wait", 0, "repeat failing checks for so long, such as 2m")
	flags.VarP(&f.output, "output", "o", f.output.words())
	flags.Var(&f.failOn, "fail-on", f.failOn.words()+": the least from which on the exit code is 1")
	flags.StringVar(&f.schedulerConfig, schedulerConfigFlag, "", "file with a KubeSchedulerConfiguration, - for standard input: print what to set for it")
	for _, other := range []string{"pre", "wait", "output", "fail-on"} {
		cmd.MarkFlagsMutuallyExclusive(schedulerConfigFlag, other)
	}
	return cmd
}

func (f *checkFlags) run(cmd *cobra.Command) error {
	if f.wait < 0 {
		return fmt.Errorf("--wait: %s is negative; give a time such as 2m", f.wait)
	}
	options, err := f.options(cmd)
	if err != nil {
		return err
	}
	report := check.Run(cmd.Context(), options)
	if err := cmd.Context().Err(); err != nil {
		return fmt.Errorf("interrupted: %w", err)
	}
	if err := f.print(cmd.OutOrStdout(), report); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	failed := report.Count(check.Failure)
	if f.failOn.value == check.Warning {
		failed += report.Count(check.Warning)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(report.Results))
	}
	return nil
}

// options makes the clients.
func (f *checkFlags) options(cmd *cobra.Command) (check.Options, error) {
	restConfig, err := f.cluster.restConfig()
	if err != nil {
		return check.Options{}, err
	}
	// What the API server has to say about the pod on trial is not for the user.
	restConfig.WarningHandler = rest.NoWarnings{}
	clients, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return check.Options{}, fmt.Errorf("reaching the cluster: %w", err)
	}
	scheme := runtime.NewScheme()
	if err := certmanagerv1.AddToScheme(scheme); err != nil {
		return check.Options{}, fmt.Errorf("registering cert-manager's types: %w", err)
	}
	certificates, err := client.New(restConfig, client.Options{Scheme: scheme})
	if err != nil {
		return check.Options{}, fmt.Errorf("reaching the cluster: %w", err)
	}
	return check.Options{
		Kubernetes:   clients,
		Certificates: certificates,
		Metrics: func(ctx context.Context) ([]byte, error) {
			return clients.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		},
		Configuration: func(ctx context.Context) (config.Configuration, error) {
			if f.configuration.path != "" || f.pre {
				return config.Load(f.configuration.path, nil)
			}
			return installedConfiguration(ctx, clients)
		},
		Deployment: func(ctx context.Context) (*appsv1.Deployment, error) {
			return installedDeployment(ctx, clients)
		},
		// Only if it was given: the context's is seldom an opted-in one.
		Namespace: f.cluster.overrides.Context.Namespace,
		Pre:       f.pre,
		Wait:      f.wait,
		Progress:  cmd.ErrOrStderr(),
	}, nil
}

// print writes the results.
func (f *checkFlags) print(w io.Writer, report check.Report) error {
	if f.output.value == outputJSON {
		return writeObject(w, outputJSON, report)
	}
	return report.Table(w, terminal.ScreenOf(w))
}

// describeScheduler prints what to set for the scheduler of a file.
func (f *checkFlags) describeScheduler(cmd *cobra.Command) error {
	cfg, err := config.Load(f.configuration.path, nil)
	if err != nil {
		return err
	}
	name := f.schedulerConfig
	var data []byte
	if name == "-" {
		name = "standard input"
		data, err = io.ReadAll(cmd.InOrStdin())
	} else {
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return fmt.Errorf("--%s: %w", schedulerConfigFlag, err)
	}
	t, err := schedulerconfig.Translate(data, cfg.Resources)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if t.Where != "" {
		name += ", " + t.Where
	}
	text, err := t.Text(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}
