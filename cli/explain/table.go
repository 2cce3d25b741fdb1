package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpu-binpacker/gpu-binpacker/cli/terminal"
	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// maxShownCandidates is how many candidates a table has without --all.
const maxShownCandidates = 20

// View prints explanations for people.
type View struct {
	Out    io.Writer
	Screen terminal.Screen
	// Wide adds columns and the patch; All shows every node.
	Wide, All bool
}

// Print prints one.
func (v *View) Print(e *Explanation) {
	v.printHeader(e)
	if len(e.Candidates) > 0 {
		fmt.Fprintln(v.Out)
		v.printCandidates(e)
	}
	if len(e.LeftOut) > 0 {
		fmt.Fprintln(v.Out)
		v.printLeftOut(e)
	}
	if v.Wide {
		fmt.Fprintln(v.Out)
		v.printPatch(e)
	}
}

func (v *View) labelled(label, text string) { terminal.PrintLabelled(v.Out, v.Screen, label, text) }

func (v *View) printHeader(e *Explanation) {
	v.labelled("Pod", fmt.Sprintf("%s/%s (%s)", e.Pod.Namespace, nameOf(e.Pod.Name, e.Pod.GenerateName), e.Pod.Source))
	v.labelled("Asks for", requestText(e.Pod.Requests))
	now := "Decision"
	if e.Admission != nil {
		v.labelled("Decided", e.Admission.decided())
		v.labelled("Landed", e.Admission.landed())
		now = "If new"
	}
	for i, because := range e.Webhook.Because {
		v.labelled("Webhook", "would not be called because "+because)
		v.labelled("Fix", e.Webhook.Fixes[i])
	}
	condition := ""
	if !e.Webhook.Called && e.Decision.Steering != webhook.SteeringNone {
		condition = "if the webhook were called: "
	}
	v.labelled(now, condition+e.Decision.Text)
	if len(e.Decision.Predicted) > 0 {
		v.labelled("Predicted", condition+e.predicted())
	}
}

// predicted names the nodes with the most points.
func (e *Explanation) predicted() string {
	var most int64
	for _, c := range e.Candidates {
		most = max(most, c.Points.Total)
	}
	aside := ""
	if e.Decision.Steering != config.SteeringRanked {
		aside = "; spreading and pod affinity, which are not counted here, may change that"
	}
	names := e.Decision.Predicted
	if len(names) == 1 {
		return fmt.Sprintf("%s takes %s, with %d points%s", e.Scheduler, names[0], most, aside)
	}
	return fmt.Sprintf("%s takes one of %s, with %d points each%s", e.Scheduler, terminal.Few(names, 3), most, aside)
}

// String names the scheduler in a sentence.
func (s Scheduler) String() string {
	text := "kube-scheduler " + s.KubernetesVersion
	switch s.Source {
	case scheduler.VersionConfigured:
		text += " (as configured)"
	case scheduler.VersionAssumed:
		text += " (assumed: the cluster's version is not known)"
	case scheduler.VersionServer:
	}
	return text
}

func (v *View) printCandidates(e *Explanation) {
	user := slices.ContainsFunc(e.Candidates, func(c Candidate) bool { return c.UserScore > 0 })
	heading := []string{"RANK", "NODE", "GPUS", "SCORE", "LEFT", "WEIGHT", "POINTS"}
	if user {
		heading = append(heading, "USER")
	}
	if v.Wide {
		heading = append(heading, "CPU LEFT", "MEMORY LEFT", "AFFINITY", "TAINTS", "FIT", "BALANCED", "IMAGES")
	}
	var t terminal.Table
	t.Add(heading...)
	shown := e.Candidates
	if !v.All && len(shown) > maxShownCandidates {
		shown = shown[:maxShownCandidates]
	}
	for i := range shown {
		t.Add(v.candidateRow(&shown[i], user)...)
	}
	t.Print(v.Out, v.Screen)
	if more := len(e.Candidates) - len(shown); more > 0 {
		fmt.Fprintf(v.Out, "... and %d more (--all)\n", more)
	}
}

func (v *View) candidateRow(c *Candidate, user bool) []string {
	gpus := make([]string, len(c.GPUs))
	for i, g := range c.GPUs {
		gpus[i] = fmt.Sprintf("%d/%d", g.Allocated, g.Allocatable)
	}
	weight := "-"
	if c.Weight > 0 {
		weight = strconv.Itoa(int(c.Weight))
	}
	row := []string{
		strconv.Itoa(c.Rank), c.Node, strings.Join(gpus, " "), terminal.Decimal(c.Score), terminal.Decimal(c.LeftAfter), weight, terminal.Decimal(c.Points.Total),
	}
	if user {
		row = append(row, terminal.Decimal(c.UserScore))
	}
	if v.Wide {
		p := &c.Points
		row = append(row, amount(corev1.ResourceCPU, c.MilliCPULeftAfter), amount(corev1.ResourceMemory, c.MemoryLeftAfter),
			terminal.Decimal(p.NodeAffinity), terminal.Decimal(p.TaintToleration), terminal.Decimal(p.NodeResourcesFit), terminal.Decimal(p.BalancedAllocation), terminal.Decimal(p.ImageLocality))
	}
	return row
}

// printLeftOut groups the nodes that are left out by reason, or lists each.
func (v *View) printLeftOut(e *Explanation) {
	var t terminal.Table
	if v.Wide || v.All {
		t.Add("LEFT OUT", "REASON")
		for _, n := range e.LeftOut {
			t.Add(n.Name, leftOutText(&n))
		}
		t.Print(v.Out, v.Screen)
		return
	}
	byReason := map[string][]string{}
	for _, n := range e.LeftOut {
		reason := outReason(&n)
		byReason[reason] = append(byReason[reason], n.Name)
	}
	reasons := slices.SortedFunc(maps.Keys(byReason), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(byReason[b]), len(byReason[a])), cmp.Compare(a, b))
	})
	width := 0
	for _, reason := range reasons {
		width = max(width, len(reason))
	}
	t.Add("LEFT OUT", "REASON", "NODES")
	for _, reason := range reasons {
		names := byReason[reason]
		room := terminal.Columns - len("LEFT OUT") - width - 4
		t.Add(strconv.Itoa(len(names)), reason, namesWithin(names, room))
	}
	t.Print(v.Out, v.Screen)
}

// leftOutText is the reason with what is lacking.
func leftOutText(n *scoring.LeftOutNode) string {
	var lacking []string
	for _, l := range n.Lacking {
		lacking = append(lacking, fmt.Sprintf("%s %s of %s", amount(l.Name, l.Free), l.Name, amount(l.Name, l.Requested)))
	}
	if len(lacking) == 0 {
		return outReason(n)
	}
	return outReason(n) + ": " + strings.Join(lacking, ", ")
}

// outReason is the reason, of a back-off with the pods that it is for unless these are all.
func outReason(n *scoring.LeftOutNode) string {
	reason := string(n.Reason)
	if n.Backoff == nil {
		return reason
	}
	if n.Backoff.Namespace {
		reason += ", of this namespace"
	}
	if n.Backoff.Requests {
		reason += ", with these requests"
	}
	return reason
}

// printPatch prints the patch, one operation a line.
func (v *View) printPatch(e *Explanation) {
	if len(e.Patch) == 0 {
		v.labelled("Patch", "none")
		return
	}
	title := "Patch"
	if e.Admission != nil {
		title = "Patch, to the pod as it is"
	}
	fmt.Fprintln(v.Out, v.Screen.Bold(title))
	for i, operation := range e.Patch {
		begin, end := " ", ","
		if i == 0 {
			begin = "["
		}
		if i == len(e.Patch)-1 {
			end = "]"
		}
		fmt.Fprintf(v.Out, "%s%s%s\n", begin, compact(operation), end)
	}
}

// compact writes JSON on one line.
func compact(raw json.RawMessage) string {
	text, err := json.Marshal(raw)
	if err != nil {
		return string(raw)
	}
	return string(text)
}
