package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// batch is programs that one go command builds: while it links one of them, which keeps
// one core busy, it compiles what the others need.
type batch []Program

// batches puts the programs together that are built from the same module in the same
// way, in the order in which they come.
func batches(programs []Program) (all []batch) {
	for _, p := range programs {
		i := slices.IndexFunc(all, func(b batch) bool { return b[0].buildsLike(p) })
		if i < 0 {
			all = append(all, nil)
			i = len(all) - 1
		}
		all[i] = append(all[i], p)
	}
	return all
}

// buildsLike tells whether one go command can build both.
func (p Program) buildsLike(other Program) bool {
	return p.Dir == other.Dir && p.Tags == other.Tags &&
		slices.Equal(p.Flags, other.Flags) && slices.Equal(p.Environment, other.Environment)
}

// linkerFlags are those of all programs, each of which takes what is for it: -X says
// nothing to a program without the variable. Without the debugger's symbols the programs
// are half as large.
func (b batch) linkerFlags() string {
	flags := []string{symbolFlags}
	for _, p := range b {
		if p.LinkerFlags != "" && !slices.Contains(flags, p.LinkerFlags) {
			flags = append(flags, p.LinkerFlags)
		}
	}
	return strings.Join(flags, " ")
}

// names lists the programs.
func (b batch) names() string {
	var names []string
	for _, p := range b {
		names = append(names, strings.TrimSpace("bin/"+p.Name+" "+p.Version))
	}
	return strings.Join(names, ", ")
}

// build builds the programs and puts them in their places, none of them when one cannot
// be built: an interrupted build must not leave half a binary there.
func (b batch) build(ctx context.Context, out io.Writer) error {
	start := time.Now()
	dir, err := os.MkdirTemp(filepath.Dir(b[0].Output), ".build-")
	if err != nil {
		return fmt.Errorf("building %s: %w", b.names(), err)
	}
	defer os.RemoveAll(dir)
	p := startProgress(out, progressInterval)
	err = b.compile(ctx, dir, p)
	p.stop()
	if err != nil {
		return fmt.Errorf("building %s: %w", b.names(), err)
	}
	for _, program := range b {
		if err := os.Rename(filepath.Join(dir, executable(program.Package)), program.Output); err != nil {
			return fmt.Errorf("building %s: %w", program.Package, err)
		}
	}
	fmt.Fprintf(out, "built %s in %s\n", b.names(), time.Since(start).Round(time.Second/10))
	return nil
}

// compile builds the programs into dir. The first command downloads modules and counts
// packages, the second compiles them. There is no -trimpath: with it nothing of the
// compile cache would be shared with go test.
func (b batch) compile(ctx context.Context, dir string, p *progress) error {
	first := b[0]
	packages := make([]string, len(b))
	for i, program := range b {
		packages[i] = program.Package
	}
	list := append([]string{"list"}, first.Flags...)
	list = append(append(list, "-deps", "-tags", first.Tags, "-f", "{{.ImportPath}}"), packages...)
	p.begin("finding what they need")
	needed, err := first.run(ctx, p, list...)
	if err != nil {
		return err
	}
	build := append([]string{"build", "-v"}, first.Flags...)
	build = append(append(build, "-tags", first.Tags, "-ldflags", b.linkerFlags(), "-o", dir+string(filepath.Separator)), packages...)
	p.beginCompiling(bytes.Count(needed, []byte("\n")))
	_, err = first.run(ctx, p, build...)
	return err
}

// run runs the go command where the program's module is. What it says is progress and,
// if it fails, the error.
func (p Program) run(ctx context.Context, messages *progress, args ...string) (stdout []byte, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.Dir
	cmd.Env = append(goEnvironment(), p.Environment...)
	cmd.Stderr = messages
	// The go command ends its compilers when it is interrupted, not when it is killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if stdout, err = cmd.Output(); err != nil {
		return nil, errors.Join(err, textError(messages.text()))
	}
	return stdout, nil
}

// executable is what the go command calls the program of a package: by the last element
// of its path that is no major version, as cmd/go/internal/load.DefaultExecName has it.
func executable(packagePath string) string {
	name := path.Base(packagePath)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		return path.Base(path.Dir(packagePath))
	}
	return name
}
