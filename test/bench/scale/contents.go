package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/fakeapi"
)

// contents is what is in the cluster.
type contents struct {
	api     *fakeapi.Server
	objects *cluster.Realistic
	nodes   int
	// churned is how many changes of pods there were.
	churned int
	// passing is the pod that comes and goes.
	passing *corev1.Pod
}

func (c *contents) addNamespace() error {
	return c.api.Set(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace, Labels: map[string]string{config.LabelEnabled: "true"}}})
}

func (c *contents) addNodes() error {
	for i := range c.nodes {
		if err := c.writeStatus(i); err != nil {
			return err
		}
	}
	return nil
}

func (c *contents) addPods(ctx context.Context) error {
	for i := range c.nodes {
		for j := range cluster.PodsPerNode {
			if err := c.api.Set(c.objects.Pod(i, j)); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// writeStatus is what a kubelet does from time to time though nothing has changed.
func (c *contents) writeStatus(i int) error {
	return c.api.Set(c.objects.Node(i%c.nodes, time.Now()))
}

// Steps of the life of a pod.
const (
	stepCreated = iota
	stepBound
	stepRunning
	stepDeleted
	steps
)

// changePod makes the next step in the lives of pods that come and go one after the
// other.
func (c *contents) changePod(int) error {
	life, step := c.churned/steps, c.churned%steps
	node := life * 37 % c.nodes // neighbours differ
	c.churned++
	switch step {
	case stepCreated:
		c.passing = c.objects.PendingPod(fmt.Sprintf("passing-%08d", life), node, life%2 == 0)
	case stepBound:
		cluster.Bind(c.passing, node)
	case stepRunning:
		cluster.Run(c.passing, node, metav1.Now())
	case stepDeleted:
		return c.api.Delete(c.passing)
	}
	return c.api.Set(c.passing)
}

// finishLife removes the pod that is there at the moment.
func (c *contents) finishLife() error {
	for c.churned%steps != 0 {
		if err := c.changePod(0); err != nil {
			return err
		}
	}
	return nil
}

// change writes the status of every node once per interval and changes pods, until
// the time is over.
func (c *contents) change(ctx context.Context, duration, statusInterval time.Duration, podChanges float64) error {
	statuses := float64(c.nodes) / statusInterval.Seconds()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return repeat(ctx, duration, statuses, c.writeStatus) })
	group.Go(func() error { return repeat(ctx, duration, podChanges, c.changePod) })
	return group.Wait()
}

// lagAllowed is by how much repeat may be behind at its end.
const lagAllowed = 2 * time.Second

// repeat does something at a rate per second for a time. On a machine too busy for
// the rate it returns an error: what was measured then means nothing.
func repeat(ctx context.Context, duration time.Duration, rate float64, do func(i int) error) error {
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range int(duration.Seconds() * rate) {
		timer.Reset(time.Until(start.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := do(i); err != nil {
			return err
		}
	}
	if lag := time.Since(start) - duration; lag > lagAllowed {
		return fmt.Errorf("%.0f changes per second took %s longer than %s: the machine is too busy", rate, lag.Round(time.Millisecond), duration)
	}
	return nil
}
