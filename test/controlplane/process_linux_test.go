package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// helperVariable makes the test binary play the parent in
// TestChildDiesWithParent.
const helperVariable = "GPU_BINPACKER_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperVariable) != "" {
		playParent()
		return
	}
	os.Exit(m.Run())
}

// playParent starts a child, prints its PID and waits to be killed.
func playParent() {
	component := NewComponent(ComponentOptions{
		Name: "child", Path: "/bin/sh", Args: []string{"-c", "exec sleep 1000"}, Dir: os.Getenv(helperVariable),
	})
	if err := component.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(component.PID())
	select {}
}

// TestChildDiesWithParent kills a process that runs a component.
func TestChildDiesWithParent(t *testing.T) {
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), executable)
	parent.Env = append(os.Environ(), helperVariable+"="+t.TempDir())
	stdout, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var child int
	if _, err := fmt.Sscan(line, &child); err != nil {
		t.Fatalf("the parent said %q", line)
	}
	if !alive(child) {
		t.Fatalf("child %d is not alive", child)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	waitGone(t, child)
}
