package config_test

import (
	"testing"

	"github.com/gpu-binpacker/gpu-binpacker/config"
)

// What API servers report as gitVersion, by vendor.
func TestParseServerVersion(t *testing.T) {
	for gitVersion, want := range map[string]string{
		"v1.37.2":                   "1.37",
		"v1.34.4-eks-113cf36":       "1.34", // EKS
		"v1.35.1-gke.100":           "1.35", // GKE
		"v1.33.7+k3s1":              "1.33", // k3s
		"v1.36.3+0bb3f13":           "1.36", // OpenShift
		"v1.36.0-aliyun.1":          "1.36", // ACK
		"v1.38.0-beta.0":            "1.38",
		"v1.38.0-beta.0.12+ab":      "1.38",
		"1.36.1":                    "1.36",
		"v1.36":                     "1.36",
		"v2.0.0":                    "2.0",
		"":                          "",
		"v0.0.0-master+$Format:%H$": "", // built without its version
		"unknown":                   "",
		"v1":                        "",
	} {
		t.Run(gitVersion, func(t *testing.T) {
			got, err := config.ParseServerVersion(gitVersion)
			if want == "" {
				if err == nil {
					t.Errorf("no error, but %v", got)
				}
				return
			}
			if err != nil || got.String() != want {
				t.Errorf("got %v, error %v; want %s", got, err, want)
			}
		})
	}
}

func TestMinorVersionAtLeast(t *testing.T) {
	for _, tc := range []struct {
		a, b config.MinorVersion
		want bool
	}{
		{config.MinorVersion{Major: 1, Minor: 36}, config.MinorVersion{Major: 1, Minor: 36}, true},
		{config.MinorVersion{Major: 1, Minor: 9}, config.MinorVersion{Major: 1, Minor: 36}, false},
		{config.MinorVersion{Major: 2}, config.MinorVersion{Major: 1, Minor: 36}, true},
		{config.MinorVersion{Major: 1, Minor: 99}, config.MinorVersion{Major: 2}, false},
	} {
		if got := tc.a.AtLeast(tc.b); got != tc.want {
			t.Errorf("%v at least %v: %v", tc.a, tc.b, got)
		}
	}
}
