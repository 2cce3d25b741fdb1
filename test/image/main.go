package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1) //nolint:gocritic // the signal handler needs no cleaning up
	}
}

// command runs the command that the first argument names.
func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "build":
			return buildCommand(args[1:], out)
		case "push":
			return pushCommand(ctx, args[1:], out)
		}
	}
	return errors.New("the first argument must be build or push")
}

func buildCommand(args []string, out io.Writer) error {
	var o options
	var created int64
	set := flag.NewFlagSet("build", flag.ContinueOnError)
	set.StringVar(&o.version, "version", "", "the version, for the label")
	set.StringVar(&o.revision, "revision", "", "the commit, for the label")
	set.StringVar(&o.source, "source", "https://github.com/gpu-binpacker/gpu-binpacker", "where the source is, for the label")
	set.Int64Var(&created, "created", 0, "time of all files and images, in seconds since 1970")
	archive := set.String("output", "image.tar", "the tar file to write")
	digestFile := set.String("digest", "", "a file to write the digest of the index to")
	if err := set.Parse(args); err != nil {
		return err
	}
	o.created = time.Unix(created, 0).UTC()
	for _, arg := range set.Args() {
		b, err := parseBinary(arg)
		if err != nil {
			return err
		}
		o.binaries = append(o.binaries, b)
	}
	index, err := build(o)
	if err != nil {
		return err
	}
	if err := writeArchive(*archive, index, o.version); err != nil {
		return err
	}
	digest, err := checkArchive(*archive, o.platforms(), out)
	if err != nil || *digestFile == "" {
		return err
	}
	if err := os.WriteFile(*digestFile, []byte(digest.String()+"\n"), 0o644); err != nil {
		return fmt.Errorf("writing the digest: %w", err)
	}
	return nil
}

// parseBinary reads "linux/amd64=path/of/the/binary".
func parseBinary(arg string) (binary, error) {
	platform, path, _ := strings.Cut(arg, "=")
	goos, goarch, _ := strings.Cut(platform, "/")
	if goos != "linux" || goarch == "" || path == "" {
		return binary{}, fmt.Errorf("argument %q: want linux/ARCHITECTURE=BINARY", arg)
	}
	return binary{platform: v1.Platform{OS: goos, Architecture: goarch}, path: path}, nil
}

// checkArchive reads an archive back, checks it, prints what is in it and returns
// the digest of its index.
func checkArchive(path string, platforms []v1.Platform, out io.Writer) (v1.Hash, error) {
	index, remove, err := readArchive(path)
	if err != nil {
		return v1.Hash{}, err
	}
	defer remove()
	contents, err := check(index, platforms)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("checking %s: %w", path, err)
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, fmt.Errorf("checking %s: %w", path, err)
	}
	fmt.Fprintf(out, "%s\n", digest)
	for _, c := range contents {
		fmt.Fprintf(out, "%-12s  %4.1f MB, %4.1f MB unpacked\n", c.platform, megabytes(c.size), megabytes(c.unpacked))
	}
	return digest, nil
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }

func pushCommand(ctx context.Context, args []string, out io.Writer) error {
	set := flag.NewFlagSet("push", flag.ContinueOnError)
	archive := set.String("archive", "image.tar", "the tar file that build wrote")
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() != 1 {
		return fmt.Errorf("%d arguments after the flags, want one: REGISTRY/REPOSITORY:TAG", set.NArg())
	}
	return push(ctx, *archive, set.Arg(0), out)
}
