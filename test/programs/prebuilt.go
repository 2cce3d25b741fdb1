package programs

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// PrebuiltVariable names an environment variable: the address of a folder that has
// prebuilt programs, in place of the one below. "off" means that all are built here.
const PrebuiltVariable = "GPU_BINPACKER_TEST_PREBUILT"

const (
	// prebuiltAddress is where `make testbed-release` of the release workflow puts them.
	prebuiltAddress = "https://github.com/gpu-binpacker/gpu-binpacker/releases/download/testbed"
	// answerTimeout is for the beginning of an answer: where there is no network, building
	// starts soon. fetchTimeout is for all of one, 100 MB over 10 Mbit/s.
	answerTimeout = 5 * time.Second
	fetchTimeout  = 90 * time.Second
	// maxProgram bounds what is unpacked. kube-apiserver has 100 MB.
	maxProgram = 512 << 20
)

// prebuiltSums has a line for each program that may be fetched: the SHA-256 of the
// program, and its file's name without .gz. A program of another version, source or
// platform has another name, so it is not taken.
//
//go:embed prebuilt.txt
var prebuiltSums string

// errNotPrebuilt says that a program is not among those that may be fetched.
var errNotPrebuilt = errors.New("not prebuilt")

// prebuiltName is the program's file for a platform, such as
// kube-apiserver_v1.37.2_linux_amd64.
func (p Program) prebuiltName(goos, goarch string) string {
	return strings.Join([]string{filepath.Base(p.Name), p.prebuiltVersion(), goos, goarch}, "_")
}

// prebuiltVersion is the version of the program's module or, for one of this repository,
// a digest of its source, which is among the linker flags.
func (p Program) prebuiltVersion() string {
	if p.Version != "" {
		return p.Version
	}
	return p.LinkerFlags[strings.LastIndex(p.LinkerFlags, "=")+1:]
}

// prebuiltSum returns the checksum of the program for this platform, empty if there is
// none.
func (p Program) prebuiltSum(sums string) string {
	for line := range strings.Lines(sums) {
		if sum, name, _ := strings.Cut(strings.TrimSpace(line), "  "); name == p.prebuiltName(runtime.GOOS, runtime.GOARCH) {
			return sum
		}
	}
	return ""
}

// isPrebuilt tells whether the program in its place is the one with the checksum.
func (p Program) isPrebuilt(sums string) bool {
	want := p.prebuiltSum(sums)
	if want == "" {
		return false
	}
	file, err := os.Open(p.Output)
	if err != nil {
		return false
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return err == nil && hex.EncodeToString(hash.Sum(nil)) == want
}

// fetchPrebuilt puts the prebuilt program in its place, if it has the checksum in sums.
// Nothing of one that has not, or that came in part, is ever in that place.
func (p Program) fetchPrebuilt(ctx context.Context, address, sums string) error {
	want := p.prebuiltSum(sums)
	if want == "" {
		return errNotPrebuilt
	}
	url := strings.TrimSuffix(address, "/") + "/" + p.prebuiltName(runtime.GOOS, runtime.GOARCH) + ".gz"
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(p.Output), 0o755); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(p.Output), ".fetch-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	got, err := unpackFrom(ctx, url, temporary)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return fmt.Errorf("fetching %s: %w", url, err)
	}
	if got != want {
		return fmt.Errorf("fetching %s: its SHA-256 is %s, test/programs/prebuilt.txt says %s", url, got, want)
	}
	if err := os.Chmod(temporary.Name(), 0o755); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), p.Output)
}

// unpackFrom writes what a gzip file at an address holds to out, and returns its SHA-256.
func unpackFrom(ctx context.Context, url string, out io.Writer) (sum string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: answerTimeout}).DialContext
	transport.TLSHandshakeTimeout, transport.ResponseHeaderTimeout = answerTimeout, answerTimeout
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the answer is %s", answer.Status)
	}
	unpacked, err := gzip.NewReader(answer.Body)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, hash), io.LimitReader(unpacked, maxProgram))
	if err == nil && n == maxProgram {
		err = fmt.Errorf("it is larger than %d MiB", maxProgram>>20)
	}
	return hex.EncodeToString(hash.Sum(nil)), err
}

// fetchAll fetches those programs that are prebuilt and returns the others. When one
// cannot be had, the rest is not asked for.
func fetchAll(ctx context.Context, out io.Writer, programs []Program) (missing []Program) {
	address := os.Getenv(PrebuiltVariable)
	switch address {
	case "off":
		return programs
	case "":
		address = prebuiltAddress
	}
	for i, p := range programs {
		start := time.Now()
		err := p.fetchPrebuilt(ctx, address, prebuiltSums)
		switch {
		case err == nil:
			fmt.Fprintf(out, "fetched bin/%s %s in %s\n", p.Name, p.Version, time.Since(start).Round(time.Second/10))
		case errors.Is(err, errNotPrebuilt):
			missing = append(missing, p)
		default:
			fmt.Fprintf(out, "%v; building instead\n", err)
			return append(missing, programs[i:]...)
		}
	}
	return missing
}
