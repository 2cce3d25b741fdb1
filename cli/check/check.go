package check

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// waitInterval is the pause between two looks of a check that is waited for.
const waitInterval = 2 * time.Second

// Options say what to check and through which clients.
type Options struct {
	// Kubernetes reads the cluster.
	Kubernetes kubernetes.Interface
	// Certificates reads cert-manager's objects.
	Certificates client.Reader
	// Metrics returns the API server's own metrics, as text.
	Metrics func(context.Context) ([]byte, error)
	// Configuration returns the configuration to go by. The error is a NotFound or
	// Forbidden of the API when it is to be that of the installation and there is
	// none, or it may not be read.
	Configuration func(context.Context) (config.Configuration, error)
	// Deployment returns the Deployment of the installation, or a NotFound of the API.
	Deployment func(context.Context) (*appsv1.Deployment, error)
	// Namespace is where a pod is created on trial. Default: the first by name that
	// opted in.
	Namespace string
	// Pre checks what an installation needs, before there is one.
	Pre bool
	// Wait is how long failing checks are repeated. Default 0: not at all.
	Wait time.Duration
	// Interval is the pause between two repetitions. Default 2 s.
	Interval time.Duration
	// Progress gets a line per repetition. Nil means none.
	Progress io.Writer
	// Now is the time. Default: the clock's.
	Now func() time.Time
}

// check is one thing to look at.
type check struct {
	code, title string
	// phases say with which value of Options.Pre it is run.
	phases phases
	run    func(context.Context, *cluster) verdict
}

type phases int

const (
	before phases = 1 << iota // before the installation, with Pre
	after                     // with an installation
	always = before | after
)

// groups are the headings, by the first digit of the codes.
var groups = map[byte]string{
	'1': "Kubernetes",
	'2': "Certificates",
	'3': "Installation",
	'4': "Namespaces and nodes",
	'5': "Surroundings",
}

// checks returns all checks in the order of their codes. A code keeps its meaning
// for good; docs/checks.md has a section for each.
func checks() []check {
	return []check{
		{"GB101", "Kubernetes is 1.30 or newer", always, checkVersion},
		{"GB102", "the API server knows admission webhooks", always, checkAdmissionAPI},
		{"GB103", "the scheduler model fits the version", always, checkModelVersion},
		{"GB104", "you may install", before, checkPermissions},
		{"GB201", "cert-manager is installed", always, checkCertManager},
		{"GB202", "cert-manager runs", always, checkCertManagerRuns},
		{"GB203", "Certificates are Ready", after, checkCertificatesReady},
		{"GB204", "Certificates are renewed in time", after, checkCertificatesRenewed},
		{"GB205", "the API server has a CA bundle", after, checkCABundle},
		{"GB206", "the CA bundle fits the certificate", after, checkServedCertificate},
		{"GB301", "the webhook is registered", after, checkRegistered},
		{"GB302", "the webhook cannot stop pods", after, checkFailsOpen},
		{"GB303", "the filter fits the resource names", after, checkMatchConditions},
		{"GB304", "the configuration is valid", after, checkConfiguration},
		{"GB305", "replicas are ready", after, checkReplicas},
		{"GB306", "the webhook is called", after, checkCalls},
		{"GB307", "no pod is refused because of it", after, checkRejections},
		{"GB308", "a GPU pod on trial is steered", after, checkTrial},
		{"GB309", "what is added to pods is accepted", after, checkAdditions},
		{"GB401", "namespaces opted in", after, checkOptedIn},
		{"GB402", "labelled namespaces take part", after, checkExcluded},
		{"GB403", "nodes offer GPUs", always, checkNodes},
		{"GB404", "GPU resource names are configured", always, checkResourceNames},
		{"GB501", "Karpenter is 1.5 or newer", always, checkKarpenter},
		{"GB502", "descheduler leaves preferences alone", always, checkDescheduler},
		{"GB503", "no other scheduler places GPU pods", always, checkOtherSchedulers},
		{"GB504", "the scheduler is as assumed", always, checkScheduler},
		{"GB505", "default spreading is switched off", always, checkSpreading},
	}
}

// Run runs the checks. Those that fail are repeated for Options.Wait.
func Run(ctx context.Context, options Options) Report {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Interval == 0 {
		options.Interval = waitInterval
	}
	if options.Progress == nil {
		options.Progress = io.Discard
	}
	var report Report
	selected := selectChecks(options.Pre)
	report.Results = make([]Result, len(selected))
	pass(ctx, options, selected, report.Results)
	if options.Wait > 0 && report.Count(Failure) > 0 {
		repeat(ctx, options, selected, report)
	}
	return report
}

func selectChecks(pre bool) []check {
	phase := after
	if pre {
		phase = before
	}
	var selected []check
	for _, c := range checks() {
		if c.phases&phase != 0 {
			selected = append(selected, c)
		}
	}
	return selected
}

// pass runs those checks that have no result yet, or one that may change.
func pass(ctx context.Context, options Options, selected []check, results []Result) {
	cluster := &cluster{Options: options}
	for i, c := range selected {
		if level := results[i].Level; level == OK || level == Warning {
			continue
		}
		v := skip("the API server does not answer")
		if _, err := cluster.serverVersion(); err == nil || c.code == "GB101" {
			v = c.run(ctx, cluster)
		}
		results[i] = Result{
			Code: c.code, Group: groups[c.code[2]], Title: c.title, Docs: docsOf(c.code),
			Level: v.level, Message: v.message, Details: v.details, Fix: v.fixes,
		}
	}
}

// repeat repeats failing checks, and those skipped because of them, until none
// fails or the time is over.
func repeat(ctx context.Context, options Options, selected []check, report Report) {
	start := options.Now()
	// That the time is over shows in the results.
	_ = wait.PollUntilContextTimeout(ctx, options.Interval, options.Wait, false, func(ctx context.Context) (bool, error) {
		fmt.Fprintf(options.Progress, "waiting for %s, %s of %s\n", strings.Join(failing(report), ", "),
			options.Now().Sub(start).Round(time.Second), options.Wait)
		next := append([]Result(nil), report.Results...)
		pass(ctx, options, selected, next)
		if ctx.Err() != nil {
			return false, ctx.Err() // cut short: the results are about that, not the cluster
		}
		copy(report.Results, next)
		return report.Count(Failure) == 0, nil
	})
}

func failing(report Report) []string {
	var codes []string
	for i := range report.Results {
		if report.Results[i].Level == Failure {
			codes = append(codes, report.Results[i].Code)
		}
	}
	return codes
}
