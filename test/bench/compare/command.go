package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// git runs git in a folder and returns what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(ctx, dir, "git", args...)
}

// output runs a command in a folder and returns what it prints, without space
// around. The error of a command that fails has what it printed.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = environment()
	// Interrupted, git and go remove their temporary files; killed, they could not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		printed := strings.TrimSpace(stdout.String() + stderr.String())
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), args[0], err, printed)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// environment is that of all commands. A go.work file in a parent folder must not
// change what is built. In a hook or a rebase, git sets variables that name one
// repository and index, whatever the folder is. Looking at the status must not write
// the index of the working tree.
func environment() []string {
	ofRepository := []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX"}
	kept := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(ofRepository, name)
	})
	return append(kept, "GOWORK=off", "GIT_OPTIONAL_LOCKS=0")
}

// isExit reports whether an error is a command that ended with that code.
func isExit(err error, code int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == code
}
