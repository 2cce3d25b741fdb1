package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// sboms are the lists of what each binary consists of, in CycloneDX's format.
type sboms struct {
	version, output string
	created         time.Time
}

// write writes a list for each argument OS/ARCHITECTURE=BINARY and prints its path.
func (s sboms) write(args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("no binaries: want arguments like linux/amd64=BINARY")
	}
	for _, arg := range args {
		platform, path, _ := strings.Cut(arg, "=")
		goos, goarch, _ := strings.Cut(platform, "/")
		if goos == "" || goarch == "" || path == "" {
			return fmt.Errorf("argument %q: want OS/ARCHITECTURE=BINARY", arg)
		}
		bom, err := s.bom(path)
		if err != nil {
			return err
		}
		name := filepath.Join(s.output, strings.Join([]string{"gpu-binpacker", s.version, goos, goarch}, "_")+".cdx.json")
		if err := writeBOM(name, bom); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		fmt.Fprintln(out, name)
	}
	return nil
}

// bom reads what the Go linker wrote into a binary: every module in it, with the checksum
// of go.sum. So the list is of what is there, not of what go.mod requires.
func (s sboms) bom(path string) (*cyclonedx.BOM, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the modules of %s: %w", path, err)
	}
	program := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, BOMRef: packageURL(info.Main.Path, s.version),
		Name: info.Main.Path, Version: s.version, PackageURL: packageURL(info.Main.Path, s.version),
	}
	standard := strings.TrimPrefix(info.GoVersion, "go")
	components := []cyclonedx.Component{{
		Type: cyclonedx.ComponentTypeLibrary, BOMRef: packageURL("std", standard),
		Name: "std", Version: standard, PackageURL: packageURL("std", standard),
	}}
	for _, module := range info.Deps {
		component, err := componentOf(module)
		if err != nil {
			return nil, fmt.Errorf("module %s of %s: %w", module.Path, path, err)
		}
		components = append(components, component)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: s.created.Format(time.RFC3339), Component: &program}
	bom.Components = &components
	return bom, nil
}

// componentOf describes a module, or what replaces it.
func componentOf(module *debug.Module) (cyclonedx.Component, error) {
	if module.Replace != nil {
		module = module.Replace
	}
	component := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, BOMRef: packageURL(module.Path, module.Version),
		Name: module.Path, Version: module.Version, PackageURL: packageURL(module.Path, module.Version),
	}
	if encoded, ok := strings.CutPrefix(module.Sum, "h1:"); ok {
		sum, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return component, fmt.Errorf("checksum %s: %w", module.Sum, err)
		}
		component.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return component, nil
}

func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + version
}

func writeBOM(name string, bom *cyclonedx.BOM) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	err = cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return errors.Join(err, file.Close())
}
