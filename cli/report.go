package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/gpu-binpacker/gpu-binpacker/cli/report"
	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// reportFlags are those of the command report.
type reportFlags struct {
	cluster       clusterFlags
	configuration configurationFlag
	state         stateFlags
	// nodesCSV and podsCSV are CSV files.
	nodesCSV, podsCSV string
	// output is the form, outputFile where it goes, html where the page goes besides.
	output, outputFile, html string
	saveState                string
	hashNames                bool
	// price, priceLabel and prices say what nodes cost; at most one is set.
	price, priceLabel, prices string
}

func newReport() *cobra.Command {
	var f reportFlags
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Simulate packing the GPU pods of a cluster and say what it would change",
		Long: `Read a cluster, or a file of one, and simulate packing its GPU pods: on how many
nodes they are now and would be, GPUs stranded, what still fits, which nodes an
autoscaler could remove, and what these cost. Nothing in the cluster is changed,
and gpu-binpacker need not be installed.

It is a simulation: gpu-binpacker never moves running pods, so such figures are
approached as pods end and others come. docs/report.md has the rules, and the
columns of CSV files.`,
		Example: `  gpu-binpacker report --html report.html
  gpu-binpacker report --price 12.5 -o markdown
  gpu-binpacker report --save-state state.yaml --hash-names
  gpu-binpacker report --state state.yaml -o json
  gpu-binpacker report --nodes-csv nodes.csv --pods-csv pods.csv
  gpu-binpacker report --example --html report.html`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runReport(cmd, &f)
		},
	}
	f.cluster.bind(cmd)
	f.state.bind(cmd)
	f.configuration.bind(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.nodesCSV, "nodes-csv", "", "CSV file of nodes to read instead of a cluster, with --pods-csv")
	flags.StringVar(&f.podsCSV, "pods-csv", "", "CSV file of pods, with --nodes-csv")
	flags.StringVarP(&f.output, "output", "o", "text", "form of the report: text, markdown, html or json")
	flags.StringVar(&f.outputFile, "output-file", "", "file to write the report to; standard output when not given")
	flags.StringVar(&f.html, "html", "", "file to write the report to as a page, besides the other form")
	flags.StringVar(&f.saveState, "save-state", "", "file to write what was read to, without commands, environment and volumes; - for standard output and no report")
	flags.BoolVar(&f.hashNames, "hash-names", false, "replace the names of nodes, namespaces, pods, owners and images in the state file and the report")
	flags.StringVar(&f.price, "price", "", "price of each node per hour, such as 12.5")
	flags.StringVar(&f.priceLabel, "price-label", "", "key of the node label that holds its price per hour")
	flags.StringVar(&f.prices, "prices", "", "CSV file of prices, with the columns instance_type and price_per_hour")
	cmd.MarkFlagsMutuallyExclusive("state", "nodes-csv", "example")
	cmd.MarkFlagsRequiredTogether("nodes-csv", "pods-csv")
	cmd.MarkFlagsMutuallyExclusive("price", "price-label", "prices")
	cmd.MarkFlagsMutuallyExclusive("save-state", "nodes-csv")
	cmd.MarkFlagsMutuallyExclusive("hash-names", "nodes-csv")
	return cmd
}

// reportForms are the forms by their name.
var reportForms = map[string]func(*report.Report, io.Writer) error{
	"text":     (*report.Report).WriteText,
	"markdown": (*report.Report).WriteMarkdown,
	"html":     (*report.Report).WriteHTML,
	"json":     (*report.Report).WriteJSON,
}

// runReport checks the flags before it reads anything, since a large cluster takes
// a while.
func runReport(cmd *cobra.Command, f *reportFlags) error {
	write, ok := reportForms[f.output]
	if !ok {
		return fmt.Errorf("-o: %q is no form; use text, markdown, html or json", f.output)
	}
	prices, err := f.priceRule()
	if err != nil {
		return err
	}
	in, cfg, err := f.read(cmd)
	if err != nil {
		return err
	}
	if f.saveState != "" {
		if err := in.State.Save(f.saveState, cmd.OutOrStdout()); err != nil {
			return fmt.Errorf("--save-state: %w", err)
		}
		if f.saveState == "-" {
			return nil // a report after it would make it unreadable
		}
	}
	progress := &progressLines{out: cmd.ErrOrStderr(), now: time.Now, last: time.Now()}
	r, err := report.New(cmd.Context(), in, report.Options{Config: cfg, Version: Version(), Prices: prices, Progress: progress.step})
	if err != nil {
		return err
	}
	if f.html != "" {
		if err := writeReport(f.html, r, (*report.Report).WriteHTML); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if f.outputFile == "" {
		return write(r, cmd.OutOrStdout())
	}
	if err := writeReport(f.outputFile, r, write); err != nil {
		return fmt.Errorf("--output-file: %w", err)
	}
	return nil
}

// priceRule returns what nodes cost, nil if no flag says.
func (f *reportFlags) priceRule() (*report.Prices, error) {
	switch {
	case f.price != "":
		price, err := report.ParsePrice(f.price)
		if err != nil {
			return nil, fmt.Errorf("--price: %w", err)
		}
		return &report.Prices{All: price}, nil
	case f.priceLabel != "":
		return &report.Prices{Label: f.priceLabel}, nil
	case f.prices != "":
		prices, err := report.LoadPrices(f.prices)
		if err != nil {
			return nil, fmt.Errorf("--prices: %w", err)
		}
		return prices, nil
	}
	return nil, nil
}

// read returns what the report is about, and the configuration.
func (f *reportFlags) read(cmd *cobra.Command) (*report.Input, config.Configuration, error) {
	var clients kubernetes.Interface
	notes := cmd.ErrOrStderr()
	if !f.state.given() && f.nodesCSV == "" {
		var err error
		if clients, err = f.cluster.clients(); err != nil {
			return nil, config.Configuration{}, fmt.Errorf("%w; or give --state, --nodes-csv and --pods-csv, or --example", err)
		}
	}
	cfg, err := f.configuration.load(cmd.Context(), clients, notes)
	if err != nil {
		return nil, cfg, err
	}
	if f.nodesCSV != "" {
		in, err := report.LoadCSV(f.nodesCSV, f.podsCSV, cfg.Resources, time.Now())
		return in, cfg, err
	}
	in := &report.Input{Source: "the cluster"}
	if f.state.given() {
		in.Source = f.state.source()
		in.State, err = f.state.load(cmd.InOrStdin())
	} else {
		in.State, err = readState(cmd.Context(), clients, notes)
	}
	if err == nil && f.hashNames && !in.State.Hashed {
		in.State, err = in.State.Hash()
	}
	return in, cfg, err
}

// writeReport writes a report to a file that only its owner can read, since it
// shows names.
func writeReport(path string, r *report.Report, write func(*report.Report, io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriter(file)
	return errors.Join(write(r, buffered), buffered.Flush(), file.Close())
}

// progressLines tells how far a long step is, at most once in a while, so that short
// ones say nothing.
type progressLines struct {
	out  io.Writer
	now  func() time.Time
	last time.Time
}

// progressInterval is between two lines of progress.
const progressInterval = 2 * time.Second

func (p *progressLines) step(name string, done, total int) {
	if now := p.now(); now.Sub(p.last) >= progressInterval {
		p.last = now
		fmt.Fprintf(p.out, "%s: %d of %d pods\n", name, done, total)
	}
}
