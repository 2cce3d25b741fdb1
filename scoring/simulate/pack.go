package simulate

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/gpu-binpacker/gpu-binpacker/scoring/steering"
)

// Order is the order in which pods are placed again.
type Order string

// Orders.
const (
	// ByCreation is the order in which the pods came: about what the webhook would
	// have given the same pods. Pods that ended since are not known, so the gaps that
	// they left are not there.
	ByCreation Order = "Creation"
	// LargestFirst is what placing everything again could reach, most GPUs first. No
	// webhook can give that, since pods come in an order of their own.
	LargestFirst Order = "LargestFirst"
)

// maxRounds bounds how often packing starts over with one more group of pods kept
// in place. Two or three are usual; without a limit it could be one for each pod.
const maxRounds = 20

// Packing is the pods of a cluster placed again.
type Packing struct {
	// Nodes as they would be.
	Nodes []Node
	// On: pod (namespace/name) -> its node, of those that were placed again.
	On map[string]string
	// Moved is how many pods have another node than now, of Placed that could have.
	Moved, Placed int
	// Kept stayed where they are, sorted by pod.
	Kept []Kept
	// PendingFit is how many pods that wait now would have found room, one after
	// another in order of creation.
	PendingFit int
	// GaveUp: packing starts over when a pod finds no node, with that pod in place.
	// That did not come to an end, so that all pods are where they are now.
	GaveUp bool
}

// Pack takes all GPU pods that may be moved off their nodes and places them again
// one after another, each on the node that the webhook would rank first. A pod that
// finds none, or that the webhook would not rank nodes for, is kept where it is, and
// all others are placed again around it.
func (sim *Simulation) Pack(ctx context.Context, order Order) (Packing, error) {
	pods := slices.Clone(sim.movable)
	if order == LargestFirst {
		slices.SortStableFunc(pods, bySize)
	} else {
		slices.SortStableFunc(pods, byCreation)
	}
	p := Packing{Kept: slices.Clone(sim.kept)}
	defer sim.restore()
	var on []string
	for round := 1; ; round++ {
		var keep map[*movable]steering.Reason
		var err error
		if on, keep, err = sim.round(ctx, pods, stepName(order, round)); err != nil {
			return Packing{}, err
		}
		if len(keep) == 0 {
			break
		}
		sim.restore()
		for _, m := range pods {
			if reason, ok := keep[m]; ok {
				p.Kept = append(p.Kept, m.kept(reason))
			}
		}
		pods = slices.DeleteFunc(pods, func(m *movable) bool { _, ok := keep[m]; return ok })
		if round == maxRounds {
			p.GaveUp = true
			for _, m := range pods {
				p.Kept = append(p.Kept, m.kept(steering.ReasonNothingFits))
			}
			pods, on = nil, nil
			break
		}
	}
	p.Placed, p.On = len(pods), make(map[string]string, len(pods))
	for i, m := range pods {
		p.On[m.key] = on[i]
		if on[i] != m.stored.Spec.NodeName {
			p.Moved++
		}
	}
	slices.SortFunc(p.Kept, compareKept)
	p.Nodes = sim.nodes(sim.ix, sim.others)
	p.PendingFit = sim.fitPending(ctx)
	return p, interrupted(ctx)
}

func stepName(order Order, round int) string {
	name := "packing in order of creation"
	if order == LargestFirst {
		name = "packing the largest first"
	}
	if round > 1 {
		name += ", round " + strconv.Itoa(round)
	}
	return name
}

// round places the pods. It returns where, or those that are to be kept in place.
func (sim *Simulation) round(ctx context.Context, pods []*movable, step string) (on []string, keep map[*movable]steering.Reason, err error) {
	for _, m := range pods {
		sim.ix.DeletePod(m.stored.UID)
	}
	on = make([]string, len(pods))
	keep = map[*movable]steering.Reason{}
	for i, m := range pods {
		if err := interrupted(ctx); err != nil {
			return nil, nil, err
		}
		d := sim.decide(ctx, m)
		if target := d.Target(); target != "" {
			on[i] = target
			sim.place(m, target)
		} else {
			keep[m] = d.Reason
		}
		sim.progress(step, i+1, len(pods))
	}
	return on, firstCause(keep), nil
}

// firstCause leaves out the pods that found nothing if others are never ranked:
// once those are where they are, there may be room.
func firstCause(keep map[*movable]steering.Reason) map[*movable]steering.Reason {
	never := maps.Clone(keep)
	maps.DeleteFunc(never, func(_ *movable, r steering.Reason) bool { return r == steering.ReasonNothingFits })
	if len(never) > 0 {
		return never
	}
	return keep
}

// restore puts all pods back to where they are.
func (sim *Simulation) restore() {
	for _, m := range sim.pending {
		sim.ix.DeletePod(m.stored.UID)
	}
	for _, m := range sim.movable {
		sim.ix.DeletePod(m.stored.UID)
	}
	for _, m := range sim.movable {
		sim.ix.SetPod(m.stored)
	}
}

// PendingFitNow is how many pods that wait would find room now.
func (sim *Simulation) PendingFitNow(ctx context.Context) int {
	defer sim.restore()
	return sim.fitPending(ctx)
}

func (sim *Simulation) fitPending(ctx context.Context) int {
	fit := 0
	for _, m := range sim.pending {
		if d := sim.decide(ctx, m); d.Target() != "" {
			sim.place(m, d.Target())
			fit++
		}
	}
	return fit
}
