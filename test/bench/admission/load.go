package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/procfs"
)

const (
	// checkEvery is how many answers are only glanced at for one that is checked.
	checkEvery = 100
	// saturationShare: the paced requests are at most this part of what the server
	// could take, or latencies would be those of a queue.
	saturationShare = 0.25
	// roomShare is the part of the free GPUs that each of the two measurements may
	// reserve.
	roomShare = 0.5
	// rateMargin is how much faster than the warm-up the measurement may be.
	rateMargin = 1.5
	// firstPods is how long pods are created before the warm-up: some tens. Dry runs leave
	// nothing behind, not even the list of the nodes that such pods may go to, which the
	// first pod of a kind makes; and no cluster only tries the pods of a kind.
	firstPods = 20 * time.Millisecond
)

// loadOptions are the flags that the benchmark hands on to the load generator.
type loadOptions struct {
	connections               int
	rate                      float64
	warmUp, saturation, paced time.Duration
}

func (o *loadOptions) bind(set *flag.FlagSet) {
	set.IntVar(&o.connections, "connections", 16, "connections at once; an API server keeps up to 25 when idle")
	set.Float64Var(&o.rate, "rate", 200, "requests per second for the latencies; fewer for a server that cannot take four times as many")
	set.DurationVar(&o.warmUp, "warm-up", time.Second, "time before a measurement")
	set.DurationVar(&o.saturation, "saturation", 4*time.Second, "time of the measurement of requests per second and CPU")
	set.DurationVar(&o.paced, "paced", 6*time.Second, "time of the measurement of latencies")
}

func (o *loadOptions) args() []string {
	return []string{
		"-connections", strconv.Itoa(o.connections), "-rate", fmt.Sprint(o.rate),
		"-warm-up", o.warmUp.String(), "-saturation", o.saturation.String(), "-paced", o.paced.String(),
	}
}

// loadResult is what the load generator prints.
type loadResult struct {
	P50Micros           float64 `json:"p50Micros"`
	P99Micros           float64 `json:"p99Micros"`
	MaxMicros           float64 `json:"maxMicros"`
	RequestsPerSecond   float64 `json:"requestsPerSecond"`
	CPUMicrosPerRequest float64 `json:"cpuMicrosPerRequest"`
	// RatePerSecond is the one at which the latencies were measured.
	RatePerSecond float64 `json:"ratePerSecond"`
	// SaturationDryRun and PacedDryRun say that the reviews were dry runs.
	SaturationDryRun bool `json:"saturationDryRun"`
	PacedDryRun      bool `json:"pacedDryRun"`
	// Unpatched are answers without a patch because the decision timeout was over;
	// the figures are worth little if there are any.
	Unpatched int64 `json:"unpatched"`
}

// generator has the connections of a load generator.
type generator struct {
	checker
	connections []*connection
	// wet and dry are the reviews, the latter a dry run.
	wet, dry []byte
	// prefix and count make UIDs, which no other run has.
	prefix string
	count  atomic.Int64
	// unpatched are answers without the patch that they should have.
	unpatched atomic.Int64
}

// load is the command load.
func load(ctx context.Context, args []string) error {
	var o loadOptions
	var g generator
	set := flag.NewFlagSet("load", flag.ExitOnError)
	o.bind(set)
	set.StringVar(&g.system, "system", "", "what answers")
	shapeName := set.String("shape", "", "shape of the cluster")
	nodes := set.Int("nodes", 0, "its size")
	port := set.Int("port", 0, "the server's port on loopback")
	pid := set.Int("pid", 0, "the server's process ID")
	ca := set.String("ca", "", "PEM file of the server's CA")
	pod := set.String("pod", "", "JSON file of the pod")
	err := set.Parse(args)
	if err != nil {
		return err
	}
	if g.shape = cluster.Find(*shapeName); g.shape == nil {
		return fmt.Errorf("there is no shape %q", *shapeName)
	}
	if g.wet, g.dry, err = readReviews(*pod, g.shape.Selector); err != nil {
		return err
	}
	g.prefix = fmt.Sprintf("%08x-%04x-4000-8000-", rand.Uint32(), rand.Uint32N(1<<16))
	defer func() {
		for _, c := range g.connections {
			c.close()
		}
	}()
	for range o.connections {
		c, err := dial(ctx, *port, *ca)
		if err != nil {
			return err
		}
		g.connections = append(g.connections, c)
	}
	r, err := g.measure(ctx, o, *pid, float64(g.shape.FreeGPUs(*nodes)))
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// measure warms up, measures at saturation, and then latencies at a moderate rate.
func (g *generator) measure(ctx context.Context, o loadOptions, pid int, freeGPUs float64) (loadResult, error) {
	if _, err := g.phase(ctx, g.wet, firstPods, 0); err != nil {
		return loadResult{}, err
	}
	warm, err := g.phase(ctx, g.dry, o.warmUp, 0)
	if err != nil {
		return loadResult{}, err
	}
	expected := float64(len(warm)) / o.warmUp.Seconds() * rateMargin
	r := loadResult{SaturationDryRun: needsDryRun(expected, o.saturation, freeGPUs)}
	cpuBefore, err := procfs.CPU(pid)
	if err != nil {
		return loadResult{}, err
	}
	start := time.Now()
	latencies, err := g.phase(ctx, g.review(r.SaturationDryRun), o.saturation, 0)
	if err != nil {
		return loadResult{}, err
	}
	elapsed := time.Since(start)
	cpuAfter, err := procfs.CPU(pid)
	if err != nil {
		return loadResult{}, err
	}
	r.RequestsPerSecond = float64(len(latencies)) / elapsed.Seconds()
	r.CPUMicrosPerRequest = micros(cpuAfter-cpuBefore) / float64(len(latencies))

	r.RatePerSecond = min(o.rate, r.RequestsPerSecond*saturationShare)
	r.PacedDryRun = needsDryRun(r.RatePerSecond, o.paced, freeGPUs)
	if latencies, err = g.phase(ctx, g.review(r.PacedDryRun), o.paced, r.RatePerSecond); err != nil {
		return loadResult{}, err
	}
	slices.Sort(latencies)
	r.P50Micros, r.P99Micros = micros(percentile(latencies, 0.5)), micros(percentile(latencies, 0.99))
	r.MaxMicros = micros(percentile(latencies, 1))
	r.Unpatched = g.unpatched.Load()
	if sent := g.count.Load(); r.Unpatched > sent/2 {
		return loadResult{}, fmt.Errorf("%d of %d answers have no patch", r.Unpatched, sent)
	}
	return r, nil
}

func (g *generator) review(dryRun bool) []byte {
	if dryRun {
		return g.dry
	}
	return g.wet
}

// needsDryRun says whether real reviews, one GPU each, would reserve too much of a
// cluster: reservations last a while, and no pod appears here that would end them.
func needsDryRun(ratePerSecond float64, duration time.Duration, freeGPUs float64) bool {
	lasting := min(duration, config.Default().InFlight.ReservationTTL.Duration)
	return ratePerSecond*lasting.Seconds() > freeGPUs*roomShare
}

// phase sends reviews for a time, at a rate, or with rate 0 as fast as they are
// answered, and returns how long each answer took.
func (g *generator) phase(ctx context.Context, review []byte, duration time.Duration, rate float64) ([]time.Duration, error) {
	group, ctx := errgroup.WithContext(ctx)
	var due chan time.Time
	if rate > 0 {
		due = make(chan time.Time, int(rate*duration.Seconds())+1) // a slow server does not slow down the rate
		group.Go(func() error { return pace(ctx, due, duration, rate) })
	}
	end := time.Now().Add(duration)
	latencies := make([][]time.Duration, len(g.connections))
	for i, c := range g.connections {
		group.Go(func() error {
			m, err := newMessage(review)
			if err != nil {
				return err
			}
			for {
				from := time.Now()
				more := from.Before(end)
				if due != nil {
					from, more = <-due
				}
				if !more || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := g.ask(c, m); err != nil {
					return err
				}
				latencies[i] = append(latencies[i], time.Since(from))
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(latencies...), nil
}

// pace says when requests are due. Latencies count from then, so that requests that
// wait for a connection behind slow ones are slow, too; but not from the time
// planned, at which this process may not have had a CPU.
func pace(ctx context.Context, due chan<- time.Time, duration time.Duration, rate float64) error {
	defer close(due)
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for i := range int(rate * duration.Seconds()) {
		timer.Reset(time.Until(start.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
		select {
		case now := <-timer.C:
			due <- now
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ask sends one review and checks the answer.
func (g *generator) ask(c *connection, m *message) error {
	count := g.count.Add(1)
	uid := fmt.Sprintf("%s%012x", g.prefix, count)
	copy(m.uid, uid)
	body, err := c.send(m)
	if err != nil {
		return err
	}
	if err := g.glance(body); errors.Is(err, errUnpatched) {
		g.unpatched.Add(1)
		return nil
	} else if err != nil {
		return err
	}
	if count%checkEvery == 1 {
		return g.check(body, uid)
	}
	return nil
}
