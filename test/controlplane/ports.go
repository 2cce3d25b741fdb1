package controlplane

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

const (
	// Ports are taken from below the range from which Linux (32768 up) and
	// macOS (49152 up) take the local ports of outgoing connections, because
	// such a connection could take a port between its reservation and its
	// use, or while a component restarts.
	firstPort, lastPort = 20000, 31999

	portAttempts = 200
)

// ports reserves TCP ports on loopback for programs that are yet to start.
// Parallel control planes, in other processes too, get different ones: the UDP
// port of the same number is held as a lock, which the kernel gives up when
// this process dies.
type ports struct {
	mu    sync.Mutex // guards locks
	locks []net.PacketConn
}

// reserve returns a free port.
func (p *ports) reserve() (int, error) {
	var last error
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		address := loopback(port)
		lock, err := net.ListenPacket("udp", address)
		if err != nil {
			last = err
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			last = errors.Join(err, lock.Close())
			continue
		}
		p.mu.Lock()
		p.locks = append(p.locks, lock)
		p.mu.Unlock()
		return port, listener.Close()
	}
	return 0, fmt.Errorf("reserving a port: %w", last)
}

// release gives all ports back.
func (p *ports) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, lock := range p.locks {
		_ = lock.Close() // it was never written to
	}
	p.locks = nil
}

// ReservePort returns a TCP port on loopback that no other control plane uses,
// for a program that works with this one. Stop gives it back.
func (cp *ControlPlane) ReservePort() (int, error) { return cp.ports.reserve() }

// loopback returns the address of a port on loopback.
func loopback(port int) string {
	return fmt.Sprintf("127.0.0.1:%d", port)
}
