package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// readyTimeout is how long a component may take to become ready. On two
	// busy cores kube-apiserver needs about ten seconds.
	readyTimeout = 2 * time.Minute
	// readyInterval is the pause between two looks at a starting component.
	readyInterval = 50 * time.Millisecond
	// probeTimeout limits one look.
	probeTimeout = 5 * time.Second
	// stopGrace is how long a component may take to end after SIGTERM
	// before it is killed.
	stopGrace = 20 * time.Second
	// logTail is how many bytes of a log an error message quotes.
	logTail = 4096
)

// ComponentOptions describe a program to run.
type ComponentOptions struct {
	// Name is the component's name, of the log file too.
	Name string
	// Path is the program and Args its arguments.
	Path string
	Args []string
	// Environment is added to the environment of this process, of which the
	// user's kubeconfig, home directory and proxies are left out.
	Environment []string
	// Dir is the working directory and holds the log file.
	Dir string
	// Ready returns nil once the program does its work. Nil means that a
	// started program is ready.
	Ready func(ctx context.Context) error
}

// Component is a program that can be stopped, killed, paused and started again
// with the same arguments. Its methods may be called from any goroutine.
type Component struct {
	options ComponentOptions

	mu      sync.Mutex // guards current
	current *process
}

// NewComponent returns a component that is not running.
func NewComponent(options ComponentOptions) *Component {
	return &Component{options: options}
}

// Name returns the component's name.
func (c *Component) Name() string { return c.options.Name }

// LogPath returns the path of the log. Every run appends to the same file.
func (c *Component) LogPath() string {
	return filepath.Join(c.options.Dir, c.options.Name+".log")
}

// Start starts the program and waits until it is ready. ctx limits the waiting
// only; the program runs until Stop or Kill.
func (c *Component) Start(ctx context.Context) error {
	started, err := c.launch()
	if err != nil {
		return fmt.Errorf("starting %s: %w", c.Name(), err)
	}
	if err := c.waitReady(ctx, started); err != nil {
		return fmt.Errorf("starting %s: %w\nlast lines of %s:\n%s", c.Name(), err, c.LogPath(), c.logTail())
	}
	return nil
}

// launch starts the program unless it runs already.
func (c *Component) launch() (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != nil && c.current.running() {
		return nil, errors.New("already running")
	}
	log, err := os.OpenFile(c.LogPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.options.Path, c.options.Args...)
	cmd.Dir = c.options.Dir
	cmd.Env = append(componentEnvironment(c.options.Dir), c.options.Environment...)
	cmd.Stdout, cmd.Stderr = log, log
	started, err := startProcess(cmd)
	if err != nil {
		return nil, err // and nothing runs that could be stopped
	}
	c.current = started
	return started, nil
}

// waitReady returns when the program is ready, has ended, or ctx or the timeout
// ran out.
func (c *Component) waitReady(ctx context.Context, started *process) error {
	if c.options.Ready == nil {
		return nil
	}
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyInterval, readyTimeout, true, func(ctx context.Context) (bool, error) {
		if !started.running() {
			return false, fmt.Errorf("ended early: %w", errors.Join(started.err, last))
		}
		probe, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		last = c.options.Ready(probe)
		return last == nil, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("not ready: %w", errors.Join(err, last))
	}
	return err
}

// Replace makes the next start run another program, with the same arguments and
// with variables added to the environment, and returns a function that takes this
// back.
func (c *Component) Replace(path string, environment ...string) (undo func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.options
	c.options.Path = path
	c.options.Environment = append(slices.Clone(before.Environment), environment...)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.options = before
	}
}

// Running reports whether the program runs. A paused program runs.
func (c *Component) Running() bool { return c.PID() != 0 }

// PID returns the process ID of the running program, or 0.
func (c *Component) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || !c.current.running() {
		return 0
	}
	return c.current.cmd.Process.Pid
}

// Signal sends a signal, for instance SIGSTOP to pause the program and SIGCONT
// to let it go on.
func (c *Component) Signal(signal os.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil || !c.current.running() {
		return fmt.Errorf("signalling %s: not running", c.Name())
	}
	if err := c.current.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("signalling %s: %w", c.Name(), err)
	}
	return nil
}

// Kill ends the program with SIGKILL and waits for its end.
func (c *Component) Kill() error {
	return c.end(syscall.SIGKILL)
}

// Stop asks the program to end with SIGTERM, waits, and kills it when it takes
// too long. Stopping what does not run is no error.
func (c *Component) Stop() error {
	return c.end(syscall.SIGTERM)
}

// Restart stops the program, if it runs, and starts it again.
func (c *Component) Restart(ctx context.Context) error {
	if err := c.Stop(); err != nil {
		return err
	}
	return c.Start(ctx)
}

// end sends a signal and waits until the program has ended.
func (c *Component) end(signal syscall.Signal) error {
	c.mu.Lock()
	running := c.current
	c.mu.Unlock()
	if running == nil || !running.running() {
		return nil
	}
	// A failure to signal means that the program ended just now.
	_ = running.cmd.Process.Signal(signal)
	// A paused program would not see SIGTERM.
	_ = running.cmd.Process.Signal(syscall.SIGCONT)

	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-running.done:
		return nil
	case <-grace.C:
	}
	_ = running.cmd.Process.Kill()
	<-running.done
	return fmt.Errorf("stopping %s: still running %s after %s, killed; log: %s", c.Name(), stopGrace, signal, c.LogPath())
}

// logTail returns the last lines of the log.
func (c *Component) logTail() string {
	file, err := os.Open(c.LogPath())
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > logTail {
		_, _ = file.Seek(-logTail, io.SeekEnd)
	}
	tail, err := io.ReadAll(io.LimitReader(file, logTail))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(tail))
}

// componentEnvironment is the environment of this process without what could
// lead a component astray: the user's kubeconfig and home directory, and proxies.
func componentEnvironment(home string) []string {
	var kept []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch strings.ToUpper(name) {
		case "HOME", "KUBECONFIG", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY":
		default:
			kept = append(kept, variable)
		}
	}
	return append(kept, "HOME="+home)
}
