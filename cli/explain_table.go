package cli

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
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/scoring/scheduler"
	"github.com/gpu-binpacker/gpu-binpacker/webhook"
)

// maxShownCandidates is how many candidates a table has without --all.
const maxShownCandidates = 20

// explanationView prints explanations for people.
type explanationView struct {
	out    io.Writer
	screen screen
	// wide adds columns and the patch; all shows every node.
	wide, all bool
}

func (v *explanationView) print(e *Explanation) {
	v.printHeader(e)
	if len(e.Candidates) > 0 {
		fmt.Fprintln(v.out)
		v.printCandidates(e)
	}
	if len(e.LeftOut) > 0 {
		fmt.Fprintln(v.out)
		v.printLeftOut(e)
	}
	if v.wide {
		fmt.Fprintln(v.out)
		v.printPatch(e)
	}
}

func (v *explanationView) labelled(label, text string) { printLabelled(v.out, v.screen, label, text) }

func (v *explanationView) printHeader(e *Explanation) {
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
	return fmt.Sprintf("%s takes one of %s, with %d points each%s", e.Scheduler, firstNames(names, 3), most, aside)
}

// String names the scheduler in a sentence.
func (s ExplainedScheduler) String() string {
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

// firstNames lists the first few names.
func firstNames(names []string, few int) string {
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// requestText lists requests, GPUs and other extended resources first.
func requestText(requests corev1.ResourceList) string {
	native := func(name corev1.ResourceName) int {
		if strings.Contains(string(name), "/") {
			return 0
		}
		return 1
	}
	names := slices.SortedFunc(maps.Keys(requests), func(a, b corev1.ResourceName) int {
		return cmp.Or(cmp.Compare(native(a), native(b)), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		q := requests[name]
		if !q.IsZero() {
			parts = append(parts, q.String()+" "+string(name))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func (v *explanationView) printCandidates(e *Explanation) {
	user := slices.ContainsFunc(e.Candidates, func(c ExplainedCandidate) bool { return c.UserScore > 0 })
	heading := []string{"RANK", "NODE", "GPUS", "SCORE", "LEFT", "WEIGHT", "POINTS"}
	if user {
		heading = append(heading, "USER")
	}
	if v.wide {
		heading = append(heading, "CPU LEFT", "MEMORY LEFT", "AFFINITY", "TAINTS", "FIT", "BALANCED", "IMAGES")
	}
	var t table
	t.add(heading...)
	shown := e.Candidates
	if !v.all && len(shown) > maxShownCandidates {
		shown = shown[:maxShownCandidates]
	}
	for i := range shown {
		t.add(v.candidateRow(&shown[i], user)...)
	}
	t.print(v.out, v.screen)
	if more := len(e.Candidates) - len(shown); more > 0 {
		fmt.Fprintf(v.out, "... and %d more (--all)\n", more)
	}
}

func (v *explanationView) candidateRow(c *ExplainedCandidate, user bool) []string {
	gpus := make([]string, len(c.GPUs))
	for i, g := range c.GPUs {
		gpus[i] = fmt.Sprintf("%d/%d", g.Used, g.Allocatable)
	}
	weight := "-"
	if c.Weight > 0 {
		weight = strconv.Itoa(int(c.Weight))
	}
	row := []string{
		strconv.Itoa(c.Rank), c.Node, strings.Join(gpus, " "), decimal(c.Score), decimal(c.LeftAfter), weight, decimal(c.Points.Total),
	}
	if user {
		row = append(row, decimal(c.UserScore))
	}
	if v.wide {
		p := &c.Points
		row = append(row, amount(corev1.ResourceCPU, c.MilliCPULeftAfter), amount(corev1.ResourceMemory, c.MemoryLeftAfter),
			decimal(p.NodeAffinity), decimal(p.TaintToleration), decimal(p.NodeResourcesFit), decimal(p.BalancedAllocation), decimal(p.ImageLocality))
	}
	return row
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// amount writes an amount of a resource: CPU from millicores, memory from bytes,
// in GiB with one decimal when it is not whole.
func amount(name corev1.ResourceName, value int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(value, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return strings.TrimSuffix(strconv.FormatFloat(float64(value)/(1<<30), 'f', 1, 64), ".0") + "Gi"
	default:
		return decimal(value)
	}
}

// printLeftOut groups the nodes that are left out by reason, or lists each.
func (v *explanationView) printLeftOut(e *Explanation) {
	var t table
	if v.wide || v.all {
		t.add("LEFT OUT", "REASON")
		for _, n := range e.LeftOut {
			t.add(n.Node, n.text())
		}
		t.print(v.out, v.screen)
		return
	}
	byReason := map[string][]string{}
	for _, n := range e.LeftOut {
		byReason[string(n.Reason)] = append(byReason[string(n.Reason)], n.Node)
	}
	reasons := slices.SortedFunc(maps.Keys(byReason), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(byReason[b]), len(byReason[a])), cmp.Compare(a, b))
	})
	width := 0
	for _, reason := range reasons {
		width = max(width, len(reason))
	}
	t.add("LEFT OUT", "REASON", "NODES")
	for _, reason := range reasons {
		names := byReason[reason]
		room := columns - len("LEFT OUT") - width - 4
		t.add(strconv.Itoa(len(names)), reason, namesWithin(names, room))
	}
	t.print(v.out, v.screen)
}

// namesWithin lists as many names as have room, one at least.
func namesWithin(names []string, room int) string {
	text := names[0]
	for i, name := range names[1:] {
		more := ""
		if i+2 < len(names) {
			more = ", ..."
		}
		if len(text)+len(", "+name+more) > room {
			return text + ", ..."
		}
		text += ", " + name
	}
	return text
}

// text is the reason with what is lacking.
func (n *ExplainedLeftOut) text() string {
	var lacking []string
	for _, l := range n.Lacking {
		name := corev1.ResourceName(l.Resource)
		lacking = append(lacking, fmt.Sprintf("%s %s of %s", amount(name, l.Free), l.Resource, amount(name, l.Requested)))
	}
	if len(lacking) == 0 {
		return string(n.Reason)
	}
	return string(n.Reason) + ": " + strings.Join(lacking, ", ")
}

// printPatch prints the patch, one operation a line.
func (v *explanationView) printPatch(e *Explanation) {
	if len(e.Patch) == 0 {
		v.labelled("Patch", "none")
		return
	}
	title := "Patch"
	if e.Admission != nil {
		title = "Patch, to the pod as it is"
	}
	fmt.Fprintln(v.out, v.screen.style(codeBold, title))
	for i, operation := range e.Patch {
		begin, end := " ", ","
		if i == 0 {
			begin = "["
		}
		if i == len(e.Patch)-1 {
			end = "]"
		}
		fmt.Fprintf(v.out, "%s%s%s\n", begin, compact(operation), end)
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
