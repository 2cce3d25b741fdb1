package config

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Load returns the configuration in force: the defaults, then the file at path
// (none when path is empty), then the flags of set that were given. Unknown and
// repeated fields of the file are errors. The result is validated; the error
// then lists every field that is wrong.
func Load(path string, set *pflag.FlagSet) (Configuration, error) {
	var cfg Configuration
	if path == "" {
		cfg = Default()
	} else {
		data, err := os.ReadFile(path)
		if err != nil {
			return Configuration{}, fmt.Errorf("reading configuration file: %w", err)
		}
		if cfg, err = Parse(data); err != nil {
			return Configuration{}, fmt.Errorf("configuration file %s: %w", path, err)
		}
	}
	if set != nil {
		if err := applyFlags(set, &cfg); err != nil {
			return Configuration{}, err
		}
	}
	if errs := Validate(cfg); len(errs) > 0 {
		return Configuration{}, fmt.Errorf("invalid configuration: %w", errs.ToAggregate())
	}
	return cfg, nil
}

// Parse decodes a configuration file onto the defaults, strictly: names of fields
// are case-sensitive, as in Kubernetes, and a file has one document. It does not
// validate.
func Parse(data []byte) (Configuration, error) {
	var lists struct {
		Scheduler struct {
			ScoringStrategy struct {
				Resources []ResourceWeight `json:"resources"`
			} `json:"scoringStrategy"`
		} `json:"scheduler"`
	}
	document, err := onlyDocument(data)
	if err != nil {
		return Configuration{}, fmt.Errorf("decoding: %w", err)
	}
	cfg := Default()
	// The identity must be stated: a file of another kind is a mistake.
	cfg.APIVersion, cfg.Kind = "", ""
	unknown, err := kjson.UnmarshalStrict(document, &cfg)
	if err := errors.Join(append(unknown, err)...); err != nil {
		return Configuration{}, fmt.Errorf("decoding: %w", err)
	}
	// A list replaces its default as a whole. JSON decoding would otherwise fill
	// fields that an element leaves out from the default element at its index.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(document, &lists); err != nil {
		return Configuration{}, fmt.Errorf("decoding lists: %w", err)
	}
	if r := lists.Scheduler.ScoringStrategy.Resources; r != nil {
		cfg.Scheduler.ScoringStrategy.Resources = r
	}
	return cfg, nil
}

// onlyDocument returns, as JSON, the one document of a YAML file. The decoder
// would read the first and ignore further ones without a word.
func onlyDocument(data []byte) ([]byte, error) {
	only := []byte("null")
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for found := false; ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return only, nil
		}
		if err != nil {
			return nil, err
		}
		document, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return nil, err
		}
		if string(document) == "null" {
			continue // nothing but comments
		}
		if found {
			return nil, errors.New("more than one YAML document")
		}
		only, found = document, true
	}
}

// BindFlags adds to set the flags that override single fields of cfg.
func BindFlags(set *pflag.FlagSet, cfg *Configuration) {
	set.StringVar((*string)(&cfg.Mode), "mode", string(cfg.Mode), "Steer, or DryRun to decide and annotate without steering")
	set.IntVar(&cfg.Server.WebhookPort, "webhook-port", cfg.Server.WebhookPort, "HTTPS port of the webhook")
	set.StringVar(&cfg.Server.CertDir, "webhook-cert-dir", cfg.Server.CertDir, "folder with tls.crt and tls.key")
	set.StringVar(&cfg.Server.ClientCAFile, "webhook-client-ca-file", cfg.Server.ClientCAFile, "PEM file; callers of the webhook must present a certificate of it")
	set.StringVar(&cfg.Server.MetricsAddress, "metrics-bind-address", cfg.Server.MetricsAddress, `address of the metrics endpoint, "0" for none`)
	set.BoolVar(&cfg.Server.MetricsInsecure, "metrics-insecure", cfg.Server.MetricsInsecure, "serve metrics over plain HTTP without authentication")
	set.StringVar(&cfg.Server.HealthAddress, "health-probe-bind-address", cfg.Server.HealthAddress, "address of /healthz and /readyz")
	set.StringVar((*string)(&cfg.Log.Level), "log-level", string(cfg.Log.Level), "Info or Debug")
	set.StringVar((*string)(&cfg.Log.Format), "log-format", string(cfg.Log.Format), "JSON or Console")
}

// applyFlags sets on cfg the flags of given that the user stated.
func applyFlags(given *pflag.FlagSet, cfg *Configuration) error {
	bound := pflag.NewFlagSet("configuration", pflag.ContinueOnError)
	BindFlags(bound, cfg)
	var firstErr error
	given.Visit(func(f *pflag.Flag) {
		if bound.Lookup(f.Name) == nil || firstErr != nil {
			return
		}
		if err := bound.Set(f.Name, f.Value.String()); err != nil {
			firstErr = fmt.Errorf("flag --%s: %w", f.Name, err)
		}
	})
	return firstErr
}
