package config

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// MinorVersion is a minor version of Kubernetes, such as 1.36: what a formula of
// the scheduler depends on. The zero value is none.
type MinorVersion struct {
	Major, Minor uint
}

var (
	// OldestVersion and NewestVersion are the oldest and the newest version whose
	// scheduler the model was compared with, by `make test-versions`.
	OldestVersion = MinorVersion{1, 34}
	// NewestVersion is also what is assumed as long as the cluster's own version is not
	// known.
	NewestVersion = MinorVersion{1, 37}
)

// ParseMinorVersion reads "major.minor", such as "1.36", as a person writes it in a
// configuration. Anything else is an error.
func ParseMinorVersion(text string) (MinorVersion, error) {
	major, minor, ok := strings.Cut(text, ".")
	if !ok {
		return MinorVersion{}, fmt.Errorf("version %q has no minor part", text)
	}
	// Unsigned: a sign is no part of a version.
	a, err := strconv.ParseUint(major, 10, 16)
	if err != nil {
		return MinorVersion{}, fmt.Errorf("parsing the major version: %w", err)
	}
	b, err := strconv.ParseUint(minor, 10, 16)
	if err != nil {
		return MinorVersion{}, fmt.Errorf("parsing the minor version: %w", err)
	}
	return MinorVersion{uint(a), uint(b)}, nil
}

// ParseServerVersion reads the gitVersion of an API server's /version. What follows
// the numbers does not count: pre-releases and the suffixes of vendors, such as
// "v1.34.4-eks-113cf36" and "v1.35.1-gke.100". It is an error when there are no
// numbers, or those of a build that was not told its version, which calls itself
// v0.0.0.
func ParseServerVersion(gitVersion string) (MinorVersion, error) {
	v, err := version.ParseGeneric(gitVersion)
	if err != nil {
		return MinorVersion{}, fmt.Errorf("reading the version of the API server: %w", err)
	}
	if v.Major() == 0 {
		return MinorVersion{}, fmt.Errorf("reading the version of the API server: %q is no version of Kubernetes", gitVersion)
	}
	return MinorVersion{v.Major(), v.Minor()}, nil
}

// String returns "major.minor".
func (v MinorVersion) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// MarshalText is String, for logs.
func (v MinorVersion) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// AtLeast tells whether the version is the other one or newer.
func (v MinorVersion) AtLeast(other MinorVersion) bool {
	return v.Major > other.Major || v.Major == other.Major && v.Minor >= other.Minor
}
