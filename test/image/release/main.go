package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

func main() {
	if err := command(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// command runs the command that the first argument names.
func command(args []string, out io.Writer) error {
	if len(args) > 0 {
		switch args[0] {
		case "archives":
			return archivesCommand(args[1:], out)
		case "krew":
			return krewCommand(args[1:], out)
		case "chart":
			return chartCommand(args[1:], out)
		case "sbom":
			return sbomCommand(args[1:], out)
		case "checksums":
			return checksumsCommand(args[1:], out)
		}
	}
	return errors.New("the first argument must be archives, krew, chart, sbom or checksums")
}

// tags are versions that krew and Helm accept: v and a semantic version without
// build metadata, which is no part of an image's tag.
var tags = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

func checkVersion(version string) error {
	if !tags.MatchString(version) {
		return fmt.Errorf("-version: %q is not a version like v0.1.0", version)
	}
	return nil
}

func archivesCommand(args []string, out io.Writer) error {
	var a archives
	var created int64
	set := flag.NewFlagSet("archives", flag.ContinueOnError)
	set.StringVar(&a.version, "version", "", "the version, like v0.1.0")
	set.StringVar(&a.license, "license", "LICENSE", "the license, which goes into each archive")
	set.StringVar(&a.output, "output", ".", "the folder to write to")
	set.Int64Var(&created, "created", 0, "time of all files, in seconds since 1970")
	if err := set.Parse(args); err != nil {
		return err
	}
	a.created = time.Unix(created, 0).UTC()
	if err := checkVersion(a.version); err != nil {
		return err
	}
	return a.write(set.Args(), out)
}

func krewCommand(args []string, out io.Writer) error {
	set := flag.NewFlagSet("krew", flag.ContinueOnError)
	version := set.String("version", "", "the version, like v0.1.0")
	template := set.String("template", ".krew.yaml", "the template")
	folder := set.String("archives", ".", "the folder with the archives")
	output := set.String("output", "gpu-binpacker.yaml", "the manifest to write")
	if err := set.Parse(args); err != nil {
		return err
	}
	if err := checkVersion(*version); err != nil {
		return err
	}
	if err := writeKrewManifest(*template, *version, *folder, *output); err != nil {
		return err
	}
	fmt.Fprintln(out, *output)
	return nil
}

func chartCommand(args []string, out io.Writer) error {
	var c chart
	var created int64
	set := flag.NewFlagSet("chart", flag.ContinueOnError)
	set.StringVar(&c.version, "version", "", "the version, like v0.1.0")
	set.StringVar(&c.image, "image", "", "the image as REPOSITORY:TAG@DIGEST")
	set.StringVar(&c.source, "chart", "config/helm/gpu-binpacker", "the chart's folder")
	set.StringVar(&c.output, "output", ".", "the folder to write to")
	set.Int64Var(&created, "created", 0, "time of all files, in seconds since 1970")
	if err := set.Parse(args); err != nil {
		return err
	}
	c.created = time.Unix(created, 0).UTC()
	if err := checkVersion(c.version); err != nil {
		return err
	}
	file, err := c.write()
	if err != nil {
		return fmt.Errorf("packaging the chart %s: %w", c.source, err)
	}
	fmt.Fprintln(out, file)
	return nil
}

func sbomCommand(args []string, out io.Writer) error {
	var s sboms
	var created int64
	set := flag.NewFlagSet("sbom", flag.ContinueOnError)
	set.StringVar(&s.version, "version", "", "the version, like v0.1.0")
	set.StringVar(&s.output, "output", ".", "the folder to write to")
	set.Int64Var(&created, "created", 0, "the time of the lists, in seconds since 1970")
	if err := set.Parse(args); err != nil {
		return err
	}
	s.created = time.Unix(created, 0).UTC()
	if err := checkVersion(s.version); err != nil {
		return err
	}
	return s.write(set.Args(), out)
}

func checksumsCommand(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments, want one: the folder", len(args))
	}
	file, err := writeChecksums(args[0])
	if err != nil {
		return err
	}
	fmt.Fprintln(out, file)
	return nil
}
