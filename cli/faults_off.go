//go:build !faults

package cli

import "github.com/gpu-binpacker/gpu-binpacker/webhook"

// withFaults does nothing: faults are for binaries of test/faults only.
func withFaults(decider webhook.Decider) webhook.Decider { return decider }
