// Command build builds the programs of the test bed into bin/ and says what it
// does, so that a test run does not seem to hang while it builds them:
//
//	cd test && go run ./programs/cmd/build
//
// With -kubernetes, which can be repeated, it builds those of further Kubernetes
// versions as well:
//
//	cd test && go run ./programs/cmd/build -kubernetes 1.34.4 -kubernetes 1.35.4
//
// With -product it builds gpu-binpacker itself, with -release DIR what is published of
// the test bed, and nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/gpu-binpacker/gpu-binpacker/test/programs"
)

func main() {
	// The first is the version of test/go.mod.
	versions := []string{""}
	flag.Func("kubernetes", "a further Kubernetes `version` to build, for example 1.34.4; can be repeated", func(text string) error {
		versions = append(versions, text)
		_, err := programs.ParseKubernetesVersion(text)
		return err
	})
	product := flag.Bool("product", false, "build gpu-binpacker instead")
	release := flag.String("release", "", "build for all platforms into this `folder`, to be published, instead")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "build: unexpected argument %q; versions are given with -kubernetes\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(versions, *product, *release); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
}

func run(versions []string, product bool, release string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if product {
		root, err := programs.RepositoryRoot()
		if err != nil {
			return err
		}
		return programs.Product(root).Build(ctx, os.Stderr)
	}
	if release != "" {
		return programs.Release(ctx, os.Stderr, release, programs.ReleasePlatforms)
	}
	for _, version := range versions {
		if _, err := programs.BuildKubernetes(ctx, os.Stderr, version); err != nil {
			return err
		}
	}
	return nil
}
