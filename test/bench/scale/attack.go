package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpu-binpacker/gpu-binpacker/test/bench/cluster"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/procfs"
	"github.com/gpu-binpacker/gpu-binpacker/test/bench/product"
	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

const (
	// memoryLimit is that of the Deployment.
	memoryLimit = 512 << 20
	// idleConnections are held on the webhook's port, nearly all that it takes, beside those of
	// attackers, who post reviews at once; dialers open them.
	idleConnections, attackers, dialers = 1900, 40, 8
	// portConnections are held on each of the other ports.
	portConnections = 100
	// victimPause is between the reviews of usual pods, leastShare of which must be steered
	// when the attack is over.
	victimPause = 50 * time.Millisecond
	// samplePause is between two looks at the process' memory.
	samplePause = 250 * time.Millisecond
	leastShare  = 0.99
	// afterAttack is when everything has to be as before.
	afterAttack = 10 * time.Second
)

// attacked is what an attack on all bounds at once has shown.
type attacked struct {
	// before, peak and after are what the process had in RAM; peak, at most during the attack.
	before, peak, after int64
	// reviews were posted by attackers, of which refused got no 200.
	reviews, refused atomic.Int64
	// hostile pods came and went in the API.
	hostile atomic.Int64
	// victims are usual pods meanwhile, steered those of them with a patch.
	victims, steered atomic.Int64
	// slowest is the longest that a victim's answer took.
	slowest atomic.Int64
}

// measureAttack fills all bounds of a process at once and returns what it showed; an error
// if it took more memory than its limit or leaves usual pods unsteered afterwards. Meanwhile
// it may: whoever reaches the webhook's port can use up its connections and its processors.
func (b *bed) measureAttack(ctx context.Context, root string) (a *attacked, err error) {
	if err := errors.Join(b.addNamespace(), b.addNodes(), b.addPods(ctx)); err != nil {
		return nil, err
	}
	p, _, err := b.start(ctx, b.contents.nodes, b.contents.nodes*cluster.PodsPerNode)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Kill()) }()
	a = &attacked{}
	if a.before, err = rssOf(p); err != nil {
		return nil, err
	}
	usual, err := os.ReadFile(filepath.Join(root, cluster.TrainerFile))
	if err != nil {
		return nil, err
	}
	progress("opening %d connections, and making %d hostile pods", idleConnections, boundPods+forgedPods)
	closeAll, err := holdIdle(ctx, local(p.Port))
	defer closeAll()
	if err := errors.Join(err, a.fillIndex(ctx, b)); err != nil {
		return nil, err
	}
	progress("attack for %s", b.attack)
	if err := a.run(ctx, b, p, usual); err != nil {
		return nil, err
	}
	closeAll()
	progress("afterwards, for %s", afterAttack)
	if err := sleep(ctx, afterAttack); err != nil {
		return nil, err
	}
	if a.after, err = rssOf(p); err != nil {
		return nil, err
	}
	last := &attacked{}
	calm, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := last.createVictims(calm, p, usual); err != nil {
		return nil, err
	}
	return a, errors.Join(a.checkMemory(), last.checkSteered())
}

func rssOf(p *product.Product) (int64, error) {
	memory, err := procfs.MemoryOf(p.PID())
	return memory.RSS, err
}

// run runs everything at once until its time is over.
func (a *attacked) run(ctx context.Context, b *bed, p *product.Product, usual []byte) error {
	ctx, cancel := context.WithTimeout(ctx, b.attack)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.sample(ctx, p) })
	group.Go(func() error { return a.createVictims(ctx, p, usual) })
	group.Go(func() error { return a.churnPods(ctx, b) })
	for i := range attackers {
		group.Go(func() error { return a.post(ctx, p, i) })
	}
	for _, port := range []int{p.HealthPort, p.MetricsPort} {
		for range portConnections {
			group.Go(func() error { return hold(ctx, local(port)) })
		}
	}
	return group.Wait()
}

// sample notes the most memory that the process has.
func (a *attacked) sample(ctx context.Context, p *product.Product) error {
	for ctx.Err() == nil {
		rss, err := rssOf(p)
		if err != nil {
			return err
		}
		a.peak = max(a.peak, rss)
		_ = sleep(ctx, samplePause)
	}
	return nil
}

// holdIdle opens connections that send half a header, and returns what closes them.
func holdIdle(ctx context.Context, address string) (closeAll func(), err error) {
	conns := make([]net.Conn, idleConnections)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(dialers)
	for i := range conns {
		group.Go(func() (err error) {
			if conns[i], err = (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(ctx, "tcp", address); err == nil {
				_, err = io.WriteString(conns[i], "POST / HTTP/1.1\r\nX-Attack: "+strings.Repeat("x", 10_000))
			}
			return err
		})
	}
	err = group.Wait()
	return func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
	}, err
}

// createVictims posts usual pods, one after the other, until the context ends.
func (a *attacked) createVictims(ctx context.Context, p *product.Product, pod []byte) error {
	client := newPoster(local(p.Port))
	defer client.close()
	for i := 0; ctx.Err() == nil; i++ {
		start := time.Now()
		status, answer, err := client.post(ctx, reviewOf(pod, cluster.Namespace, fmt.Sprintf("victim-%d", i)))
		if ctx.Err() != nil {
			return nil
		}
		a.victims.Add(1)
		if err == nil && status == 200 && isSteered(answer) {
			a.steered.Add(1)
		}
		if took := int64(time.Since(start)); took > a.slowest.Load() {
			a.slowest.Store(took)
		}
		_ = sleep(ctx, victimPause)
	}
	return nil
}

// post posts what costs most, in turns, until the context ends.
func (a *attacked) post(ctx context.Context, p *product.Product, i int) error {
	client := newPoster(local(p.Port))
	defer client.close()
	for n := i; ctx.Err() == nil; n++ {
		status, _, err := client.post(ctx, hostileReview(n))
		a.reviews.Add(1)
		if err != nil || status != 200 {
			a.refused.Add(1)
			_ = sleep(ctx, victimPause)
		}
	}
	return nil
}

// hold keeps a connection open that sends half a header, and opens it again when it was
// ended.
func hold(ctx context.Context, address string) error {
	for ctx.Err() == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			_, _ = io.WriteString(conn, "GET /readyz HTTP/1.1\r\nX-Attack: ")
			_, _ = io.Copy(io.Discard, conn)
			stop()
			conn.Close()
		}
		_ = sleep(ctx, time.Second)
	}
	return nil
}

// local is the address of a port of this machine.
func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func (a *attacked) checkMemory() error {
	if a.peak >= memoryLimit {
		return fmt.Errorf("the process took %.0f MiB, its limit is %d MiB", mebibytes(a.peak), memoryLimit>>20)
	}
	return nil
}

func (a *attacked) checkSteered() error {
	if victims, steered := a.victims.Load(), a.steered.Load(); victims == 0 || float64(steered) < leastShare*float64(victims) {
		return fmt.Errorf("%d of %d usual pods were steered %s after the attack, want %.0f %%", steered, victims, afterAttack, 100*leastShare)
	}
	return nil
}

// writeTable prints what the attack has shown.
func (a *attacked) writeTable(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "memory before, at most meanwhile, %s after\t%.0f, %.0f, %.0f MiB\tbelow %d MiB\n",
		afterAttack, mebibytes(a.before), mebibytes(a.peak), mebibytes(a.after), memoryLimit>>20)
	fmt.Fprintf(table, "hostile pods, reviews, of these refused\t%d, %d, %d\t\n", a.hostile.Load(), a.reviews.Load(), a.refused.Load())
	fmt.Fprintf(table, "usual pods steered meanwhile\t%d of %d\t\n", a.steered.Load(), a.victims.Load())
	fmt.Fprintf(table, "slowest of their answers\t%s\t\n", time.Duration(a.slowest.Load()).Round(time.Millisecond))
	return table.Flush()
}

// attackOnly runs the attack instead of the measurements.
func attackOnly(ctx context.Context, b *bed) error {
	root, err := programs.RepositoryRoot()
	if err != nil {
		return err
	}
	a, err := b.measureAttack(ctx, root)
	if a != nil {
		err = errors.Join(a.writeTable(os.Stdout), err)
	}
	return err
}
