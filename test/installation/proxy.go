package installation

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/controlplane"
)

// dialTimeout limits the connection to a replica. A process that listens accepts
// at once, even a paused one: the kernel does it.
const dialTimeout = time.Second

// proxy takes kube-proxy's part. It gives each new connection to the next
// replica and copies bytes, of which it understands nothing. A replica that
// refuses the connection is passed over, as it would be in a cluster as soon as
// its endpoint is gone. With one replica there is nothing to do: the API server
// connects to it directly.
type proxy struct {
	// port is what the API server connects to.
	port     int
	backends []*backend
	listener net.Listener

	mu          sync.Mutex // guards connections and next
	connections map[*connection]struct{}
	next        int
	copying     sync.WaitGroup
}

// backend is a replica as the proxy sees it.
type backend struct {
	port int
	// accepted counts the connections it was given.
	accepted atomic.Int64
}

// connection is a connection of the API server to a replica.
type connection struct {
	client, replica net.Conn
	opened          time.Time
	// active is when a byte passed last, in nanoseconds since 1970.
	active atomic.Int64
}

// listen reserves ports for the replicas and opens the proxy's own.
func listen(cp *controlplane.ControlPlane, replicas int) (*proxy, error) {
	p := &proxy{connections: map[*connection]struct{}{}}
	for range replicas {
		port, err := cp.ReservePort()
		if err != nil {
			return nil, err
		}
		p.backends = append(p.backends, &backend{port: port})
	}
	p.port = p.backends[0].port
	if replicas == 1 {
		return p, nil
	}
	var err error
	if p.port, err = cp.ReservePort(); err != nil {
		return nil, err
	}
	if p.listener, err = net.Listen("tcp", address(p.port)); err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	return p, nil
}

// address returns the address of a port on loopback.
func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// serve accepts connections until close.
func (p *proxy) serve() {
	if p.listener == nil {
		return
	}
	for {
		client, err := p.listener.Accept()
		if err != nil {
			break // only close makes Accept fail
		}
		p.copying.Go(func() { p.forward(client) })
	}
	p.copying.Wait()
}

// forward connects a client to a replica and copies until both have closed.
func (p *proxy) forward(client net.Conn) {
	defer client.Close()
	replica, err := p.dial()
	if err != nil {
		return
	}
	defer replica.Close()
	c := &connection{client: client, replica: replica, opened: time.Now()}
	c.active.Store(c.opened.UnixNano())
	if !p.add(c) {
		return
	}
	defer p.remove(c)
	var back sync.WaitGroup
	back.Go(func() { c.copy(client, replica) })
	c.copy(replica, client)
	back.Wait()
}

// dial connects to the next replica that accepts.
func (p *proxy) dial() (net.Conn, error) {
	var all error
	for range p.backends {
		p.mu.Lock()
		next := p.backends[p.next%len(p.backends)]
		p.next++
		p.mu.Unlock()
		conn, err := net.DialTimeout("tcp", address(next.port), dialTimeout)
		if err == nil {
			next.accepted.Add(1)
			return conn, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

// copy copies one direction and passes the end of it on.
func (c *connection) copy(to, from net.Conn) {
	_, err := io.Copy(to, &activityReader{from, &c.active})
	if tcp, ok := to.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
		return
	}
	c.close()
}

// close ends both directions.
func (c *connection) close() {
	c.client.Close()
	c.replica.Close()
}

// activityReader notes when it has read something.
type activityReader struct {
	io.Reader
	active *atomic.Int64
}

func (r *activityReader) Read(buffer []byte) (int, error) {
	n, err := r.Reader.Read(buffer)
	if n > 0 {
		r.active.Store(time.Now().UnixNano())
	}
	return n, err
}

// add remembers a connection, unless the proxy is closed.
func (p *proxy) add(c *connection) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.connections == nil {
		return false
	}
	p.connections[c] = struct{}{}
	return true
}

// remove forgets a connection.
func (p *proxy) remove(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, c)
}

// closeUnused closes the connections that were opened before a moment and have
// been silent for a while.
func (p *proxy) closeUnused(before time.Time, silent time.Duration) {
	limit := time.Now().Add(-silent).UnixNano()
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.connections {
		if c.opened.Before(before) && c.active.Load() < limit {
			c.close()
		}
	}
}

// close ends the proxy and all connections.
func (p *proxy) close() {
	if p.listener != nil {
		p.listener.Close()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.connections {
		c.close()
	}
	p.connections = nil
}
