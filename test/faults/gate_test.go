package faults

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What a client gets.
const (
	answer  = "answer"
	silence = "silence"
	cut     = "cut"
	refusal = "refusal"
)

// TestGate looks at each way to fail from a client's side.
func TestGate(t *testing.T) {
	port, err := cluster.ReservePort()
	if err != nil {
		t.Fatal(err)
	}
	g, err := openGate(port, startEchoServer(t))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	for _, tc := range []struct {
		name       string
		state      gateState
		old, fresh string // what an old and a new connection get
	}{
		{"passing", passing, answer, answer},
		{"silent", silent, silence, silence},
		{"passing after silent", passing, answer, answer},
		{"resetting", resetting, cut, cut},
		{"passing after resetting", passing, answer, answer},
		{"refusing", refusing, cut, refusal},
		{"passing after refusing", passing, answer, answer},
	} {
		setGate(t, g, passing)
		old, err := net.Dial("tcp", g.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := echo(old); got != answer {
			t.Errorf("before %s: %s, want %s", tc.name, got, answer)
		}
		setGate(t, g, tc.state)
		if got := echo(old); got != tc.old {
			t.Errorf("%s: an old connection gets %s, want %s", tc.name, got, tc.old)
		}
		old.Close()
		if got := dialAndEcho(g.address); got != tc.fresh {
			t.Errorf("%s: a new connection gets %s, want %s", tc.name, got, tc.fresh)
		}
	}
}

func setGate(t *testing.T, g *gate, state gateState) {
	t.Helper()
	if err := g.set(state); err != nil {
		t.Fatal(err)
	}
}

// startEchoServer returns the port of a server that sends back what it gets.
func startEchoServer(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { listener.Close() })
	serving.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer connection.Close()
				_, _ = io.Copy(connection, connection)
			})
		}
	})
	return listener.Addr().(*net.TCPAddr).Port
}

// dialAndEcho says what comes of a new connection.
func dialAndEcho(address string) string {
	connection, err := net.Dial("tcp", address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return refusal
	}
	if err != nil {
		return cut // which can come as early as that
	}
	defer connection.Close()
	return echo(connection)
}

// echo says what comes back on a connection to a server that echoes.
func echo(connection net.Conn) string {
	_ = connection.SetDeadline(time.Now().Add(time.Second)) // an error shows below
	if _, err := connection.Write([]byte("x")); err != nil {
		return cut
	}
	_, err := connection.Read(make([]byte, 1))
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return silence
	}
	if err != nil {
		return cut
	}
	return answer
}
