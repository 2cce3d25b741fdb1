package faults

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gpu-binpacker/gpu-binpacker/config"
	"github.com/gpu-binpacker/gpu-binpacker/test/podstream"
)

const (
	// slowPerKind is how many slow clients of each kind a replica gets: more than
	// it handles requests at once (server.maxConcurrentRequests, 64).
	slowPerKind = 100
	// slowInterval is the pause between two bytes of a slow client.
	slowInterval = 100 * time.Millisecond
)

// slowClient keeps a connection busy with as little as possible until the server
// or ctx ends it. It returns an error only when it did not get so far.
type slowClient func(ctx context.Context, address string) error

// slowClients are connections that want nothing but to last.
func slowClients() fault {
	var clients sync.WaitGroup
	var cancel context.CancelFunc
	var busy atomic.Int64
	return fault{
		name: "slow clients",
		inject: func(ctx context.Context, b *bed) error {
			ctx, cancel = context.WithCancel(ctx)
			for _, replica := range b.installed.Replicas() {
				for _, slow := range []slowClient{noHandshake, slowHeader, slowBody} {
					for range slowPerKind {
						clients.Go(func() { repeat(ctx, &busy, slow, replica.WebhookAddress()) })
					}
				}
			}
			return nil
		},
		shows: func(ctx context.Context, b *bed, since time.Time) (bool, error) {
			if count := busy.Load(); count < slowPerKind {
				return false, fmt.Errorf("%d slow clients were connected", count)
			}
			return created(5*podsPerSecond)(ctx, b, since)
		},
		end: func(context.Context, *bed) error {
			cancel()
			clients.Wait()
			return nil
		},
	}
}

// repeat lets a slow client come back as often as it is thrown out, and counts how
// often it got in.
func repeat(ctx context.Context, busy *atomic.Int64, slow slowClient, address string) {
	for {
		if slow(ctx, address) == nil {
			busy.Add(1)
		}
		if !podstream.Pause(ctx, slowInterval) {
			return
		}
	}
}

// noHandshake connects and says nothing.
func noHandshake(ctx context.Context, address string) error {
	connection, err := (&net.Dialer{Timeout: callTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	dribble(ctx, connection, nil)
	return nil
}

// slowHeader sends a header that never ends.
func slowHeader(ctx context.Context, address string) error {
	connection, err := dialTLS(ctx, address)
	if err != nil {
		return err
	}
	defer connection.Close()
	dribble(ctx, connection, []byte("POST "+config.WebhookPath+" HTTP/1.1\r\nHost: x\r\nX-Slow: "))
	return nil
}

// slowBody sends a body that never ends.
func slowBody(ctx context.Context, address string) error {
	connection, err := dialTLS(ctx, address)
	if err != nil {
		return err
	}
	defer connection.Close()
	dribble(ctx, connection, []byte("POST "+config.WebhookPath+" HTTP/1.1\r\nHost: x\r\n"+
		"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"))
	return nil
}

// dribble writes the beginning, if there is any, and then a byte from time to
// time, until the other side or ctx ends it.
func dribble(ctx context.Context, connection net.Conn, beginning []byte) {
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { connection.Close() })
	defer stop()
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, connection) // ends when the connection does
	}()
	defer func() {
		connection.Close()
		<-ended
	}()
	if len(beginning) == 0 {
		<-ended
		return
	}
	for piece := beginning; ; piece = []byte("x") {
		if _, err := connection.Write(piece); err != nil {
			return
		}
		timer := time.NewTimer(slowInterval)
		select {
		case <-timer.C:
		case <-ended:
			timer.Stop()
			return
		}
	}
}

// dialTLS connects and shakes hands, within callTimeout.
func dialTLS(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	return dialer.DialContext(ctx, "tcp", address)
}

// connectionsAtOnce opens that many connections to each replica, and when all are
// open sends a review on each at the same time.
func connectionsAtOnce(count int) fault {
	answered := 0
	return fault{
		name: fmt.Sprintf("%d connections at once", count),
		inject: func(ctx context.Context, b *bed) error {
			answered = 0
			for _, replica := range b.installed.Replicas() {
				answers, err := reviewsAtOnce(ctx, replica.WebhookAddress(), count)
				if err != nil {
					return fmt.Errorf("calling %s: %w", replica.Name(), err)
				}
				for _, answer := range answers {
					if answer.status != 0 {
						answered++
					}
				}
			}
			return nil
		},
		shows: func(ctx context.Context, b *bed, since time.Time) (bool, error) {
			if want := count * len(b.installed.Replicas()); answered < want {
				return false, fmt.Errorf("%d of %d calls got an answer", answered, want)
			}
			return created(podsPerSecond)(ctx, b, since)
		},
	}
}

// reviewsAtOnce returns the answers. An answer that would refuse a pod is an
// error.
func reviewsAtOnce(ctx context.Context, address string, count int) ([]anyAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	connections := make([]net.Conn, count)
	answers := make([]anyAnswer, count)
	defer func() {
		for _, connection := range connections {
			if connection != nil {
				connection.Close()
			}
		}
	}()
	var opening, calling errgroup.Group
	for n := range connections {
		opening.Go(func() (err error) {
			connections[n], err = dialTLS(ctx, address)
			return err
		})
	}
	if err := opening.Wait(); err != nil {
		return nil, err
	}
	for n, connection := range connections {
		calling.Go(func() error {
			answers[n] = callOn(ctx, connection, review(gpuPodJSON(fmt.Sprint("at-once-", n))))
			return answers[n].check()
		})
	}
	return answers, calling.Wait()
}

// callOn posts a review on a connection.
func callOn(ctx context.Context, connection net.Conn, body []byte) anyAnswer {
	deadline, _ := ctx.Deadline()
	if connection.SetDeadline(deadline) != nil {
		return anyAnswer{}
	}
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n",
		config.WebhookPath, len(body))
	if _, err := connection.Write(append([]byte(head), body...)); err != nil {
		return anyAnswer{}
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return anyAnswer{}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return anyAnswer{}
	}
	return parseAnswer(response.StatusCode, content)
}
