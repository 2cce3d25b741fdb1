package main

import (
	"context"
	"fmt"

	"github.com/gpu-binpacker/gpu-binpacker/test/scenario"
)

// show plays all scenarios, each without and with the webhook, and draws them.
func show(ctx context.Context, cluster *scenario.Cluster, t *terminal) (report, error) {
	var r report
	for _, s := range scenario.All() {
		t.title(s.Title)
		entry, err := play(ctx, cluster, s, t)
		if err != nil {
			return report{}, fmt.Errorf("scenario %s: %w", s.Name, err)
		}
		r.Scenarios = append(r.Scenarios, entry)
	}
	return r, nil
}

// play plays one scenario twice.
func play(ctx context.Context, cluster *scenario.Cluster, s scenario.Scenario, t *terminal) (entry, error) {
	t.progress("in a namespace without the label ...")
	without, err := scenario.Run(ctx, cluster, s, false, nil)
	if err != nil {
		return entry{}, err
	}
	t.progress("in a namespace with the label ...")
	e := entry{Name: s.Name, Title: s.Title, Ideal: s.Ideal, Without: newResult(without)}
	with, err := scenario.Run(ctx, cluster, s, true, func(stage *scenario.Stage) error {
		placement, err := stage.Placement(ctx)
		if err != nil {
			return err
		}
		t.sideBySide(without, placement)
		if s.Name != "four-pods" {
			return nil
		}
		return e.emptyOne(ctx, stage, placement, t)
	})
	if err != nil {
		return entry{}, err
	}
	e.With = newResult(with)
	if err := s.Check(with); err != nil {
		e.Problem = err.Error()
	}
	t.verdict(e)
	return e, nil
}

// emptyOne deletes the pods of one used node and shows that it is empty.
func (e *entry) emptyOne(ctx context.Context, stage *scenario.Stage, before scenario.Placement, t *terminal) error {
	for _, node := range before.Nodes {
		if len(node.Pods) == 0 {
			continue
		}
		t.progress("the pods of " + node.Name + " end ...")
		if err := stage.Empty(ctx, node.Name); err != nil {
			return err
		}
		after, err := stage.Placement(ctx)
		if err != nil {
			return err
		}
		t.one(after)
		if len(after.Node(node.Name).Pods) > 0 {
			return fmt.Errorf("node %s still holds pods", node.Name)
		}
		e.Emptied = newResult(after)
		t.progress(fmt.Sprintf("%s is empty: an autoscaler can remove it", node.Name))
		return nil
	}
	return fmt.Errorf("no node is used")
}
