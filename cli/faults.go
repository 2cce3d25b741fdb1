//go:build faults

package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// faultFileVariable names, in the environment, the file that says what goes wrong
// in each decision: "panic", a duration such as "2s" to wait, or nothing. A file,
// so that a fault begins and ends while the process runs.
const faultFileVariable = "GPU_BINPACKER_FAULT_FILE"

// withFaults makes decisions go wrong on request, for test/faults. It is only
// compiled with the build tag faults, which no released binary has.
func withFaults(decider webhook.Decider) webhook.Decider {
	return faultyDecider{next: decider, file: os.Getenv(faultFileVariable)}
}

// faultyDecider decides like next, after what the file says.
type faultyDecider struct {
	next webhook.Decider
	file string
}

// Decide waits without regard to the context, like code that is stuck.
func (d faultyDecider) Decide(ctx context.Context, request scoring.Request) scoring.Decision {
	content, err := os.ReadFile(d.file)
	fault := strings.TrimSpace(string(content))
	switch {
	case err != nil || fault == "":
	case fault == "panic":
		panic("injected by " + d.file)
	default:
		delay, err := time.ParseDuration(fault)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", d.file, err))
		}
		<-time.After(delay)
	}
	return d.next.Decide(ctx, request)
}
