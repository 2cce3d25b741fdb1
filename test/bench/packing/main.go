package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/replay"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/report"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/system"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/workload"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// options are the flags.
type options struct {
	mode        string
	systems     string
	workloads   string
	run         string
	trace       string
	traceList   string
	seeds       int
	timeout     time.Duration
	check       bool
	resume      bool
	list        bool
	keep        bool
	binary      string
	productArgs string
	verbosity   int
	pods        string
	reports     string
	patient     bool
}

func main() {
	o := options{}
	flag.StringVar(&o.mode, "mode", quick, "quick: minutes, small clusters; full: hours, everything")
	flag.StringVar(&o.systems, "systems", "", "comma-separated: default, most-allocated, plugin, ours (or ours-1, ours-2); default all")
	flag.StringVar(&o.workloads, "workloads", "", "comma-separated: uniform, mixed, waiting, churn, openb, openb-churn and others that -list names; default all")
	flag.StringVar(&o.run, "run", "", "a regular expression on workload/nodes/owner/arrival/load/seed, as -list prints them")
	flag.StringVar(&o.trace, "trace", os.Getenv("TRACE"), "folder of the openb trace, for openb and openb-churn; default $TRACE")
	flag.StringVar(&o.traceList, "trace-list", workload.DefaultList, "which list of pods of the trace: NAME of openb_pod_list_NAME.csv")
	flag.IntVar(&o.seeds, "seeds", 0, "seeds per workload; default 1, in full mode 5 where something is random")
	flag.DurationVar(&o.timeout, "timeout", 12*time.Hour, "end after that time; what is done is saved")
	flag.BoolVar(&o.check, "check", false, "fail unless the results show what they must")
	flag.BoolVar(&o.resume, "resume", false, "leave out runs that are in bin/reports/packing.json already")
	flag.BoolVar(&o.list, "list", false, "list the workloads and end")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs of the control plane")
	flag.StringVar(&o.binary, "binary", "", "the gpu-binpacker to run; default: built from the repository")
	flag.StringVar(&o.productArgs, "product-args", "", "more arguments for it, separated by spaces, such as --log-level=Debug")
	flag.IntVar(&o.verbosity, "scheduler-v", 0, "verbosity of kube-scheduler; 10 logs the scores")
	flag.BoolVar(&o.patient, "patient", false, "give the webhook ten seconds instead of one, on a busy machine; results say so")
	flag.StringVar(&o.pods, "pods", "", "a file for the pods at the end of each run, one JSON object per line")
	flag.StringVar(&o.reports, "reports", "", "the folder for packing.json and packing.html; default bin/reports of the repository")
	flag.Parse()
	log.SetLogger(klog.Logger{}) // controller-runtime has nothing to say here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	err := bench(ctx, o)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "packing:", err)
		os.Exit(1) //nolint:gocritic // the signal handler needs no cleaning up
	}
}

// bench replays all workloads on all systems, one system after the other.
func bench(ctx context.Context, o options) error {
	systems, workloads, err := selected(o)
	if err != nil {
		return err
	}
	if o.list {
		for _, w := range workloads {
			fmt.Fprintln(os.Stdout, caseName(w, o.mode))
		}
		return nil
	}
	if o.reports == "" {
		root, err := programs.RepositoryRoot()
		if err != nil {
			return err
		}
		o.reports = filepath.Join(root, "bin", "reports")
	}
	file, err := report.Open(o.reports)
	if err != nil {
		return err
	}
	s := &session{options: o, file: file}
	err = s.replayAll(ctx, systems, workloads)
	if tableErr := report.WriteTable(os.Stdout, s.results(systems, workloads)); tableErr != nil {
		err = errors.Join(err, tableErr)
	}
	fmt.Fprintf(os.Stdout, "\nsaved: %s and %s\n", filepath.Join(o.reports, report.ResultsFile), filepath.Join(o.reports, report.PictureFile))
	if err != nil || !o.check {
		return err
	}
	return check(s.results(systems, workloads))
}

// selected returns the systems and workloads that the flags name.
func selected(o options) ([]system.System, []*workload.Workload, error) {
	systems, err := system.Parse(o.systems)
	if err != nil {
		return nil, nil, err
	}
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return nil, nil, fmt.Errorf("-run: %w", err)
	}
	all, err := plan(o.mode, o.trace, o.traceList, o.seeds)
	if err != nil {
		return nil, nil, err
	}
	names := strings.Split(o.workloads, ",")
	var workloads []*workload.Workload
	for _, w := range all {
		if (o.workloads == "" || slices.Contains(names, w.Name)) && pattern.MatchString(caseName(w, o.mode)) {
			workloads = append(workloads, w)
		}
	}
	if len(workloads) == 0 {
		return nil, nil, errors.New("no workload is left; -list shows those of a mode; openb needs -trace")
	}
	return systems, workloads, nil
}

// caseName is what -run matches.
func caseName(w *workload.Workload, mode string) string {
	r := report.New(w, mode, "", 0)
	return fmt.Sprintf("%s/seed%d", r.Case(), r.Seed)
}

// session is one invocation.
type session struct {
	options
	file *report.File
	bed  *system.Bed
	// done counts runs, for progress lines and names of namespaces.
	done, total int
}

// replayAll starts the control plane if anything is left to do, and does it.
func (s *session) replayAll(ctx context.Context, systems []system.System, workloads []*workload.Workload) (err error) {
	for _, w := range workloads {
		if err := s.file.Add(report.NewBound(w, s.mode, system.Bound)); err != nil {
			return err
		}
	}
	todo := map[system.System][]*workload.Workload{}
	for _, sys := range systems {
		for _, w := range workloads {
			r := report.New(w, s.mode, sys.Name, sys.Replicas)
			if s.resume && s.file.Has(r.Key()) {
				continue
			}
			todo[sys] = append(todo[sys], w)
			s.total++
		}
	}
	if s.total == 0 {
		return nil
	}
	systemOptions := system.Options{
		Binary: s.binary, ProductArgs: strings.Fields(s.productArgs), SchedulerVerbosity: s.verbosity,
		Patient: s.patient, KeepDir: s.keep, Log: os.Stdout,
		Plugin: len(todo[system.System{Name: system.Plugin}]) > 0,
	}
	if s.pods != "" {
		pods, err := os.Create(s.pods)
		if err != nil {
			return err
		}
		defer pods.Close()
		systemOptions.Pods = pods
	}
	if s.bed, err = system.Start(ctx, systemOptions); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.bed.Stop()) }()
	for _, sys := range systems {
		for _, w := range todo[sys] {
			if err := s.replay(ctx, sys, w); err != nil {
				return fmt.Errorf("%s on %s: %w", caseName(w, s.mode), sys, err)
			}
		}
	}
	return nil
}

// mostAttempts is how often a run is made at most. On a machine that is busy with
// other things a call of the webhook can miss its timeout of a second, and the pod
// is created unsteered: that says nothing about packing. The last attempt counts,
// whatever it was.
const mostAttempts = 3

// replay does one run and saves it.
func (s *session) replay(ctx context.Context, sys system.System, w *workload.Workload) error {
	if err := s.bed.Use(ctx, sys); err != nil {
		return err
	}
	s.done++
	fmt.Fprintf(os.Stdout, "[%d/%d] %s  %s ... ", s.done, s.total, sys, caseName(w, s.mode))
	start := time.Now()
	r := report.New(w, s.mode, sys.Name, sys.Replicas)
	for r.Attempts < mostAttempts && (r.Attempts == 0 || r.FailedOpen > 0) {
		if r.Attempts > 0 {
			fmt.Fprintf(os.Stdout, "%d calls of the webhook timed out: again ... ", r.FailedOpen)
		}
		attempts := r.Attempts + 1
		r = report.New(w, s.mode, sys.Name, sys.Replicas)
		r.Attempts, r.Patient = attempts, s.patient && sys.Name == system.Ours
		if err := replay.Run(ctx, s.bed, w, fmt.Sprintf("run-%d-%d", s.done, attempts), &r); err != nil {
			fmt.Fprintln(os.Stdout)
			return err
		}
	}
	fmt.Fprintf(os.Stdout, "%.4g nodes (ideal %d), %.0f GPUs on them (bound %d), %d of %d bound in %.1f s; run took %.1f s\n",
		r.OccupiedNodes, r.IdealNodes, r.GPUsOnOccupiedNodes, r.IdealGPUs, r.Bound, r.Pods, r.BindAllSeconds, time.Since(start).Seconds())
	return s.file.Add(r)
}

// results are those of this invocation's systems and workloads, the bound too.
func (s *session) results(systems []system.System, workloads []*workload.Workload) []report.Result {
	wanted := map[string]bool{}
	for _, w := range workloads {
		for _, sys := range append([]system.System{{Name: system.Bound}}, systems...) {
			r := report.New(w, s.mode, sys.Name, sys.Replicas)
			wanted[r.Key()] = true
		}
	}
	var results []report.Result
	for _, r := range s.file.Results {
		if wanted[r.Key()] {
			results = append(results, r)
		}
	}
	return results
}
