package controlplane

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// progressInterval is how often a running build says that it is alive.
	progressInterval = 15 * time.Second

	// lockInterval is how often a process that waits for the build of
	// another one looks again.
	lockInterval = 200 * time.Millisecond
)

// Program is a Go program that the test bed builds.
type Program struct {
	// Name is what progress lines call it.
	Name string
	// Package is the import path of its main package.
	Package string
	// Version is the version of its module. A binary of another version is
	// not reused. Empty means that the linker flags decide alone.
	Version string
	// Dir is the directory whose go.mod selects the versions.
	Dir string
	// Output is the path of the binary.
	Output string
	// LinkerFlags are passed to the linker. A binary that was linked with
	// other flags is not reused.
	LinkerFlags string
	// Tags are build tags, separated by commas.
	Tags string
	// Flags are further flags of go build.
	Flags []string
	// Environment is added to the environment of the go command.
	Environment []string
}

// ensureAll builds those of the listed programs that are not up to date. Nobody else
// builds into dir meanwhile.
func ensureAll(ctx context.Context, out io.Writer, dir string, list func() ([]Program, error)) error {
	unlock, err := lockDir(ctx, dir, out)
	if err != nil {
		return err
	}
	defer unlock()
	programs, err := list()
	if err != nil {
		return err
	}
	for _, program := range programs {
		if err := program.ensure(ctx, out); err != nil {
			return err
		}
	}
	return nil
}

// ensure builds the program unless its binary is up to date.
func (p Program) ensure(ctx context.Context, out io.Writer) error {
	toolchain, err := goVersion(ctx, p.Dir, p.Environment...)
	if err != nil {
		return err
	}
	reason := p.outdated(toolchain)
	if reason == "" {
		fmt.Fprintln(out, strings.TrimSpace("reusing bin/"+p.Name+" "+p.Version))
		return nil
	}
	fmt.Fprintf(out, "building %s (%s)\n", strings.TrimSpace("bin/"+p.Name+" "+p.Version), reason)
	// Not into the final place: an interrupted build must not leave half a
	// binary there.
	temporary := fmt.Sprintf("%s.%d.tmp", p.Output, os.Getpid())
	defer os.Remove(temporary)
	if err := p.build(ctx, out, temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, p.Output); err != nil {
		return fmt.Errorf("building %s: %w", p.Package, err)
	}
	return nil
}

// outdated says why the binary must be built, or nothing when it need not be.
// It reads what the Go linker wrote into the binary, so that there is no second
// record that could disagree with it.
func (p Program) outdated(toolchain string) string {
	info, err := buildinfo.ReadFile(p.Output)
	if errors.Is(err, os.ErrNotExist) {
		return "first time only"
	}
	if err != nil {
		return "the existing one is not readable"
	}
	if info.GoVersion != toolchain {
		return fmt.Sprintf("the existing one was built by %s", info.GoVersion)
	}
	if info.Path != p.Package {
		return fmt.Sprintf("the existing one is %s", info.Path)
	}
	if p.Version != "" && info.Main.Version != p.Version {
		return fmt.Sprintf("the existing one is %s", info.Main.Version)
	}
	for _, setting := range info.Settings {
		if setting.Key == "-ldflags" && setting.Value != p.linkerFlags() {
			return "the existing one was linked with other flags"
		}
	}
	return ""
}

// linkerFlags are LinkerFlags without the debugger's symbols, which would
// double the size of the binaries.
func (p Program) linkerFlags() string {
	return strings.TrimSpace("-s -w " + p.LinkerFlags)
}

// Build builds a program whose source is in this repository. The go command
// itself sees whether anything has changed.
func (p Program) Build(ctx context.Context, out io.Writer) error {
	unlock, err := lockDir(ctx, filepath.Dir(p.Output), out)
	if err != nil {
		return err
	}
	defer unlock()
	return p.build(ctx, out, p.Output)
}

// build builds the program and reports its progress to out. There is no
// -trimpath: with it nothing of the compile cache would be shared with go test.
func (p Program) build(ctx context.Context, out io.Writer, output string) error {
	start := time.Now()
	args := append([]string{"build"}, p.Flags...)
	args = append(args, "-tags", p.Tags, "-ldflags", p.linkerFlags(), "-o", output, p.Package)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.Dir
	cmd.Env = append(goEnvironment(), p.Environment...)
	// The go command ends its compilers when it is interrupted, not when it
	// is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second

	stopTicker := reportEvery(progressInterval, func(elapsed time.Duration) {
		fmt.Fprintf(out, "building bin/%s: %s so far\n", p.Name, elapsed.Round(time.Second))
	})
	messages, err := cmd.CombinedOutput()
	stopTicker()
	if err != nil {
		return fmt.Errorf("building %s: %w", p.Package, errors.Join(err, textError(string(messages))))
	}
	fmt.Fprintf(out, "built bin/%s in %.1f s\n", p.Name, time.Since(start).Seconds())
	return nil
}

// reportEvery calls report at every interval until the returned function, which
// waits for a report under way.
func reportEvery(interval time.Duration, report func(elapsed time.Duration)) (stop func()) {
	start := time.Now()
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				report(time.Since(start))
			case <-quit:
				return
			}
		}
	}()
	return func() {
		close(quit)
		<-done
	}
}

// lockDir creates dir and keeps other processes from building into it until the
// returned function: go test runs the packages of a module at the same time.
// The kernel gives up the lock when this process dies.
func lockDir(ctx context.Context, dir string, out io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	file, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	ticker := time.NewTicker(lockInterval)
	defer ticker.Stop()
	for waiting := false; ; waiting = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", dir, err)
		}
		if !waiting {
			fmt.Fprintf(out, "waiting for another process that builds into %s\n", dir)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("locking %s: %w", dir, ctx.Err())
		}
	}
}
