package controlplane

import (
	"os/exec"
	"runtime"
)

// process is one run of a program.
type process struct {
	cmd *exec.Cmd
	// done is closed when the program has ended; err is set before.
	done chan struct{}
	err  error
}

// startProcess starts cmd. The child dies with this process, see attributes.
func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = attributes()
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ends the child when the thread that started it
		// ends, so this goroutine keeps that thread as long as the
		// child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	return p, <-started
}

// running reports whether the program has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}
