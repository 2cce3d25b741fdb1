package system

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// patientKustomization is config/default with a longer timeout of the webhook.
var patientKustomization = filepath.Join("test", "bench", "system", "patient")

// Settings of the shipped configuration that a patient one replaces; a second is
// the most that a decision may take.
const (
	shippedDecisionTimeout = "decisionTimeout: 500ms"
	patientDecisionTimeout = "decisionTimeout: 1s"
)

// patientConfiguration is the shipped configuration with a longer timeout.
func patientConfiguration() ([]byte, error) {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return nil, err
	}
	shipped, err := os.ReadFile(filepath.Join(root, "config", "manager", "configuration.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the shipped configuration: %w", err)
	}
	patient := bytes.Replace(shipped, []byte(shippedDecisionTimeout), []byte(patientDecisionTimeout), 1)
	if bytes.Equal(patient, shipped) {
		return nil, errors.New("the shipped configuration has no " + shippedDecisionTimeout)
	}
	return patient, nil
}
