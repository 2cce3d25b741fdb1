package faults

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// gateState is what a gate does with connections.
type gateState int

const (
	// passing: bytes go through.
	passing gateState = iota
	// refusing: nobody listens. What was connected is cut.
	refusing
	// resetting: what was connected is cut, and whoever connects, too.
	resetting
	// silent: connections are accepted and stay, but no byte passes.
	silent
)

const gateDialTimeout = time.Second

// gate is a TCP proxy before one address that fails like a network.
type gate struct {
	port             int
	address, backend string
	serving          sync.WaitGroup

	mu    sync.Mutex // guards what follows
	state gateState
	// listener is nil while nobody listens.
	listener net.Listener
	pairs    map[*pair]struct{}
	// pass is closed unless the gate is silent.
	pass chan struct{}
	// troubled counts the connections that came since the gate last passed.
	troubled int
}

// pair is a connection to the gate and the one to the backend that belongs to it.
type pair struct {
	client, server net.Conn
	closed         chan struct{}
	once           sync.Once
}

// openGate returns a gate that passes.
func openGate(port, backend int) (*gate, error) {
	g := &gate{
		port:    port,
		address: fmt.Sprintf("127.0.0.1:%d", port),
		backend: fmt.Sprintf("127.0.0.1:%d", backend),
		pairs:   map[*pair]struct{}{},
		pass:    make(chan struct{}),
	}
	close(g.pass)
	return g, g.set(passing)
}

// set changes what the gate does.
func (g *gate) set(state gateState) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == passing {
		g.troubled = 0
	}
	if g.state == silent && state != silent {
		close(g.pass)
	}
	if g.state != silent && state == silent {
		g.pass = make(chan struct{})
	}
	g.state = state
	if state == refusing || state == resetting {
		for p := range g.pairs {
			p.close()
		}
	}
	if state == refusing {
		g.stopListening()
		return nil
	}
	return g.listen()
}

// listen listens unless it does. Call under the lock.
func (g *gate) listen() error {
	if g.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", g.address)
	if err != nil {
		return fmt.Errorf("opening the gate to %s: %w", g.backend, err)
	}
	g.listener = listener
	g.serving.Go(func() { g.serve(listener) })
	return nil
}

// stopListening makes the port refuse connections. Call under the lock.
func (g *gate) stopListening() {
	if g.listener != nil {
		g.listener.Close()
		g.listener = nil
	}
}

// close ends the gate and everything that goes through it.
func (g *gate) close() {
	_ = g.set(refusing) // cannot fail: nothing is opened
	g.serving.Wait()
}

// troubledConnections is how many connections came since the gate last passed.
func (g *gate) troubledConnections() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.troubled
}

func (g *gate) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // only closing it makes Accept fail
		}
		g.serving.Go(func() { g.forward(client) })
	}
}

// forward copies between a connection and a new one to the backend until both
// have ended.
func (g *gate) forward(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", g.backend, gateDialTimeout)
	if err != nil {
		reset(client) // as if nobody listened here either
		return
	}
	p := &pair{client: client, server: server, closed: make(chan struct{})}
	defer p.close()
	if !g.add(p) {
		reset(client)
		return
	}
	defer g.remove(p)
	var back sync.WaitGroup
	back.Go(func() { g.copy(p, client, server) })
	g.copy(p, server, client)
	back.Wait()
}

// add remembers a connection. It is false when the connection is to be cut.
func (g *gate) add(p *pair) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state != passing {
		g.troubled++
	}
	if g.state == refusing || g.state == resetting {
		return false
	}
	g.pairs[p] = struct{}{}
	return true
}

func (g *gate) remove(p *pair) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.pairs, p)
}

// copy copies one direction and passes the end of it on.
func (g *gate) copy(p *pair, to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !g.waitPass(p) {
			return
		}
		if _, writeErr := to.Write(buffer[:n]); writeErr != nil {
			p.close()
			return
		}
		if errors.Is(err, io.EOF) {
			_ = to.(*net.TCPConn).CloseWrite() // its own copy sees what is wrong
			return
		}
		if err != nil {
			p.close()
			return
		}
	}
}

// waitPass returns true when bytes may pass, false when the connection is cut.
func (g *gate) waitPass(p *pair) bool {
	g.mu.Lock()
	pass := g.pass
	g.mu.Unlock()
	select {
	case <-pass:
		return true
	case <-p.closed:
		return false
	}
}

// close cuts both connections.
func (p *pair) close() {
	p.once.Do(func() {
		close(p.closed)
		reset(p.client)
		reset(p.server)
	})
}

// reset closes a connection with a reset: the other side sees an error and no
// orderly end.
func reset(connection net.Conn) {
	_ = connection.(*net.TCPConn).SetLinger(0) // closed below in any case
	connection.Close()
}
