package programs

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// symbolFlags leave out the debugger's symbols.
const symbolFlags = "-s -w"

// lockInterval is how often a process that waits for the build of another one looks
// again.
const lockInterval = 200 * time.Millisecond

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
	// LinkerFlags are passed to the linker, among those of other programs. A binary that
	// was linked without them is not reused.
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
	var missing []Program
	for _, program := range programs {
		toolchain, err := goVersion(ctx, program.Dir, program.Environment...)
		if err != nil {
			return err
		}
		name, reason := strings.TrimSpace("bin/"+program.Name+" "+program.Version), program.outdated(toolchain)
		if reason == "" || program.isPrebuilt(prebuiltSums) {
			fmt.Fprintln(out, "reusing "+name)
			continue
		}
		fmt.Fprintf(out, "missing: %s (%s)\n", name, reason)
		missing = append(missing, program)
	}
	for _, b := range batches(fetchAll(ctx, out, missing)) {
		if err := b.build(ctx, out); err != nil {
			return err
		}
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
		if setting.Key == "-ldflags" && !p.linkedWith(setting.Value) {
			return "the existing one was linked with other flags"
		}
	}
	return ""
}

// linkedWith tells whether a binary with these linker flags has those of the program.
func (p Program) linkedWith(flags string) bool {
	return strings.HasPrefix(flags, symbolFlags) && strings.Contains(flags, p.LinkerFlags)
}

// Build builds a program whose source is in this repository. The go command itself sees
// whether anything has changed.
func (p Program) Build(ctx context.Context, out io.Writer) error {
	unlock, err := lockDir(ctx, filepath.Dir(p.Output), out)
	if err != nil {
		return err
	}
	defer unlock()
	return batch{p}.build(ctx, out)
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
