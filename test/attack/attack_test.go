package attack

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// full is the form of make test-attack.
var full = flag.Bool("full", false, "all attacks, on 5,000 nodes, not the short form")

// binary is what is attacked.
var binary = flag.String("binary", "", "the gpu-binpacker to attack; empty: built from the repository")

// nodesFlag replaces the form's number of nodes.
var nodesFlag = flag.Int("nodes", 0, "number of nodes, at least the 60 that some attacks are about; 0: 5,000 in the full form")

// size is that of a form of the suite.
type size struct {
	mode string
	// nodes is how many nodes with 8 GPUs there are, sharedNodes among them.
	nodes int
	// length is how long each attack goes on.
	length time.Duration
}

// The work of a new kind of pods grows with the nodes, so the full form has many.
var (
	shortSize = size{mode: "short", nodes: sharedNodes, length: 6 * time.Second}
	fullSize  = size{mode: "full", nodes: 5000, length: 15 * time.Second}
)

// attack is a row: who attacks, and how.
type attack struct {
	name string
	// optedIn: the attacker's namespace has opted in, as the victims' has. For
	// attacks on ports it means nothing: they need no namespace.
	optedIn bool
	// short: the row is a part of the short form too.
	short bool
	// shared: the victims want the same few nodes as the attacker.
	shared bool
	// quota: the attacker's namespace has a quota with no GPU left.
	quota bool
	// keepMiB is how much more of its heap a replica may have in use afterwards; 0: that is
	// not looked at.
	keepMiB float64
	// lead is how long the attack goes on before it is measured.
	lead time.Duration
	// compare is the name of an earlier row of which the 99th percentile may be
	// doubled.
	compare string
	// least is how many requests or connections must get through in a second: less
	// would be no attack.
	least int
	// run attacks until ctx ends.
	run func(ctx context.Context, b *bed, a *attacker) error
}

// quotaLead is after how long a namespace of which no pod ever comes must not reserve
// anything: its first reservations end after 5 s (inFlight.reservationTTL), from which it
// is known, and those that it made until then after 5 s more.
const quotaLead = 12 * time.Second

// What may stay in use after an attack, in MiB. Pools of the attacker's kinds may, 64 of
// 5,000 nodes each; what else an outsider sends may not, but for what is alive at the
// moment, and the heap differs by some MiB from one collection to the next.
const (
	keepsNothing = 24
	keepsPools   = 64
)

// Names of rows that others are compared with.
const (
	noAttack  = "none"
	knownKind = "200 dry runs a second of one kind"
)

// attacks returns the rows in order: on memory, on time, on truth. The last two may
// leave back-offs behind, which end with time only.
func attacks() []attack {
	var all []attack
	for _, row := range [][]attack{
		{{name: noAttack, run: nothing}},
		inAndOut(attack{name: "250 KB in our annotations", keepMiB: keepsNothing, least: 20, run: barrage{perSecond: 100, few: true, pod: swollenAnnotations, keep: 20}.run}),
		inAndOut(attack{name: "2,000 resource names", keepMiB: keepsNothing, least: 5, run: barrage{perSecond: 40, few: true, pod: manyResources, keep: 20, refused: apierrors.IsInvalid}.run}),
		{
			{name: "1 MB of required affinity", optedIn: true, keepMiB: keepsPools, least: 5, run: barrage{perSecond: 12, few: true, pod: hugeConstraints, refused: apierrors.IsInvalid}.run},
			{name: "20,000 preferred expressions", optedIn: true, keepMiB: keepsPools, least: 1, run: barrage{perSecond: 4, few: true, pod: hugePreferences, refused: apierrors.IsInvalid}.run},
			{name: "64 slow bodies of 4 MiB at once", least: 10, run: slowBodies},
			{name: "headers of 1 MiB to the health port", keepMiB: keepsNothing, least: 20, run: hugeHeaders},
			{name: "6,000 idle connections", least: 200, run: idleConnections},
			{name: "800 /readyz a second", least: 100, run: readyzHammered},
			{name: knownKind, optedIn: true, least: 100, run: barrage{perSecond: 200, pod: oneKind, dryRun: true}.run},
			{name: "200 dry runs a second of new kinds", optedIn: true, compare: knownKind, least: 100, run: barrage{perSecond: 200, pod: newKind, dryRun: true}.run},
			{name: "100 pods a second of new kinds", optedIn: true, keepMiB: keepsPools, least: 40, run: barrage{perSecond: 100, pod: newKind}.run},
			{name: "65 kinds in turn", optedIn: true, least: 30, run: barrage{perSecond: 65, pod: kindsInTurn}.run},
			{name: "pods refused by a quota", optedIn: true, short: true, shared: true, quota: true, lead: quotaLead, least: 20, run: barrage{perSecond: 40, pod: eightGPUs, refused: isOverQuota}.run},
		},
		inAndOut(attack{name: "forged terms", shared: true, least: 5, run: barrage{perSecond: 20, pod: forgedTerms, keep: 5}.run}),
		outAndIn(attack{name: "pods refused by nodes", short: true, shared: true, least: 10, run: barrage{perSecond: 50, pod: refusedByNodes, keep: 60}.run}),
	} {
		all = append(all, row...)
	}
	return all
}

// inAndOut is the attack from a namespace that has opted in, and from one that has not.
func inAndOut(a attack) []attack {
	in, out := a, a
	in.optedIn = true
	return []attack{in, out}
}

// outAndIn is inAndOut the other way round, of which the short form has the first.
func outAndIn(a attack) []attack {
	in, out := a, a
	in.optedIn, in.short = true, false
	return []attack{out, in}
}

// nothing is the attack that is none: it shows what is normal.
func nothing(ctx context.Context, _ *bed, _ *attacker) error {
	<-ctx.Done()
	return nil
}

// title is the name with which -run finds the row.
func (a attack) title() string {
	if a.optedIn {
		return a.name + ", opted in"
	}
	return a.name
}

// TestAttack plays the rows. A row that shows damage is followed by a restart of the
// replicas, or the next one could only show the same.
func TestAttack(t *testing.T) {
	form := shortSize
	if *full {
		form = fullSize
	}
	if *nodesFlag > 0 {
		form.nodes = max(*nodesFlag, sharedNodes)
	}
	b := startBed(t, form)
	rows := &reportFile{}
	for _, a := range attacks() {
		if !a.short && !*full {
			continue
		}
		t.Run(a.title(), func(t *testing.T) {
			if err := b.heal(t.Context()); err != nil {
				t.Fatal(err)
			}
			row := b.play(t.Context(), a, rows)
			rows.add(row)
			t.Log(row.line())
			for _, problem := range row.Problems {
				t.Error(problem)
			}
		})
	}
	if err := rows.save(t.Output()); err != nil {
		t.Error(err)
	}
}

// Two rows of one name could not be told apart in the report, and a row that is
// compared with another needs it before.
func TestAttacksAreNamed(t *testing.T) {
	earlier := map[string]bool{}
	for _, a := range attacks() {
		if earlier[a.title()] {
			t.Errorf("two rows are called %q", a.title())
		}
		if a.compare != "" && !earlier[attack{name: a.compare, optedIn: a.optedIn}.title()] {
			t.Errorf("%q is compared with %q, which does not come before", a.title(), a.compare)
		}
		earlier[a.title()] = true
	}
	if rows := fmt.Sprint(len(earlier)); len(earlier) < 15 {
		t.Errorf("only %s rows", rows)
	}
}
