package explain

import (
	"os"
	"regexp"
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// reasonConstant is a constant of type steering.Reason with its value.
var reasonConstant = regexp.MustCompile(`(?m)^\tReason\w+ +Reason = "(.*)"$`)

// Every reason that a decision can have is explained in words.
func TestReasonTexts(t *testing.T) {
	source, err := os.ReadFile("../../scoring/steering/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	reasons := reasonConstant.FindAllStringSubmatch(string(source), -1)
	if len(reasons) != len(reasonTexts)+1 {
		t.Errorf("found %d reasons in the source, ReasonNone included, and there are texts for %d", len(reasons), len(reasonTexts))
	}
	for _, r := range reasons {
		reason := steering.Reason(r[1])
		if text := reasonTexts[reason]; reason != "" && text == "" {
			t.Errorf("reason %s has no text", reason)
		}
	}
}
