package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

// endTimeout is how long an interrupted command may take to end.
const endTimeout = 30 * time.Second

// reports is the folder for what the suites of this version leave behind.
func (r *runner) reports() string {
	return filepath.Join(r.root, "bin", "reports", "versions", r.version)
}

// command runs the go command on the version's control plane. Its output goes to
// out and, like its messages, into the log, whose path is returned.
func (r *runner) command(ctx context.Context, suite string, out io.Writer, args ...string) (log string, err error) {
	log = filepath.Join(r.reports(), suite+".log")
	if err := os.MkdirAll(r.reports(), 0o755); err != nil {
		return log, err
	}
	file, err := os.Create(log)
	if err != nil {
		return log, err
	}
	defer file.Close()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(r.root, "test")
	cmd.Env = append(os.Environ(), "GOWORK=off", programs.KubernetesVariable+"="+r.version)
	cmd.Stdout = io.MultiWriter(file, out)
	cmd.Stderr = io.MultiWriter(file, r.out)
	// The go command does not pass signals on: they go to the whole group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = endTimeout
	if err := cmd.Run(); err != nil {
		return log, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return log, nil
}
