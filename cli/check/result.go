package check

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
)

// Level says how much a result matters.
type Level string

// The levels.
const (
	// OK: as it should be.
	OK Level = "ok"
	// Warning: it works, but perhaps not as intended.
	Warning Level = "warning"
	// Failure: pods are not steered, or harm is done.
	Failure Level = "failure"
	// Skipped: could not be looked at, for want of a permission or because of
	// another result.
	Skipped Level = "skipped"
)

// Result is what one check found. Its fields are a contract for scripts.
type Result struct {
	// Code is stable, such as GB205.
	Code string `json:"code"`
	// Group is the heading that the code belongs to.
	Group string `json:"group"`
	// Title says what is checked, as it should be.
	Title string `json:"title"`
	Level Level  `json:"level"`
	// Message says what was found, in one sentence.
	Message string `json:"message"`
	// Details are further lines, at most a few.
	Details []string `json:"details,omitempty"`
	// Fix are commands, or lines of YAML for the configuration.
	Fix []string `json:"fix,omitempty"`
	// Docs is the section about the code, relative to the repository.
	Docs string `json:"docs"`
}

// Report is what all checks found, in the order of their codes.
type Report struct {
	Results []Result `json:"results"`
}

// Count returns how many results have the level.
func (r Report) Count(level Level) int {
	n := 0
	for i := range r.Results {
		if r.Results[i].Level == level {
			n++
		}
	}
	return n
}

// docsOf is where a code is explained.
func docsOf(code string) string { return "docs/checks.md#" + strings.ToLower(code) }

// verdict is a check's part of a result.
type verdict struct {
	level   Level
	message string
	details []string
	fixes   []string
}

func ok(format string, args ...any) verdict {
	return verdict{level: OK, message: fmt.Sprintf(format, args...)}
}

func warn(format string, args ...any) verdict {
	return verdict{level: Warning, message: fmt.Sprintf(format, args...)}
}

func fail(format string, args ...any) verdict {
	return verdict{level: Failure, message: fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) verdict {
	return verdict{level: Skipped, message: fmt.Sprintf(format, args...)}
}

// fix adds lines that mend it.
func (v verdict) fix(lines ...string) verdict {
	v.fixes = append(v.fixes, lines...)
	return v
}

// detail adds lines that say more.
func (v verdict) detail(lines ...string) verdict {
	v.details = append(v.details, lines...)
	return v
}

// unread is the verdict about what could not be read. action is what the user has
// to be allowed to do, such as "list nodes".
func unread(action string, err error) verdict {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return skip("needs permission to %s", action)
	}
	return fail("cannot %s: %v", action, err)
}

// few joins names, and counts those beyond a handful.
func few(names []string) string { return terminal.Few(names, 5) }
