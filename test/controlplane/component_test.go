package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// shell returns a component that runs a shell script.
func shell(t *testing.T, script string, ready func(context.Context) error) *Component {
	t.Helper()
	component := NewComponent(ComponentOptions{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Dir: t.TempDir(), Ready: ready,
	})
	t.Cleanup(func() { _ = component.Kill() })
	return component
}

func TestComponentLifecycle(t *testing.T) {
	component := shell(t, "exec sleep 1000", nil)
	if component.Running() {
		t.Fatal("running before Start")
	}
	if err := component.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := component.Start(t.Context()); err == nil {
		t.Error("a second Start succeeded")
	}
	first := component.PID()
	if err := component.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if !component.Running() {
		t.Error("a paused component does not count as running")
	}
	// Restart must also get through to a paused process.
	if err := component.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if second := component.PID(); second == first || second == 0 {
		t.Errorf("PID %d after Restart, %d before", second, first)
	}
	if err := component.Kill(); err != nil {
		t.Fatal(err)
	}
	if component.Running() {
		t.Error("running after Kill")
	}
	if err := component.Stop(); err != nil {
		t.Errorf("Stop of what does not run: %v", err)
	}
	if err := component.Signal(syscall.SIGTERM); err == nil {
		t.Error("Signal to what does not run succeeded")
	}
}

func TestComponentStartQuotesTheLog(t *testing.T) {
	never := func(context.Context) error { return errors.New("no answer") }
	component := shell(t, "echo port is taken >&2; exit 3", never)
	err := component.Start(t.Context())
	for _, want := range []string{"starting script", "ended early", "exit status 3", "port is taken", component.LogPath()} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not mention %q", err, want)
		}
	}
}

func TestComponentStartGivesUp(t *testing.T) {
	never := func(context.Context) error { return errors.New("no answer") }
	component := shell(t, "exec sleep 1000", never)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err := component.Start(ctx)
	if err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("error %v does not mention what the probe said", err)
	}
	if !component.Running() {
		t.Error("the program is gone, so that nobody can look at it")
	}
}

// alive reports whether a process exists and is no zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// waitGone waits until none of the processes exists.
func waitGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 5*time.Second, true,
			func(context.Context) (bool, error) { return !alive(pid), nil })
		if err != nil {
			t.Errorf("process %d is still alive: %v", pid, err)
		}
	}
}

// A program that cannot be started leaves nothing behind that could be stopped.
func TestComponentThatDoesNotExist(t *testing.T) {
	component := NewComponent(ComponentOptions{Name: "nothing", Path: "/does/not/exist", Dir: t.TempDir()})
	if err := component.Start(t.Context()); err == nil {
		t.Error("it was started")
	}
	if err := component.Stop(); err != nil {
		t.Errorf("stopping it: %v", err)
	}
}
