package controlplane

import (
	"fmt"

	"golang.org/x/mod/semver"
)

// KubernetesVersion returns the version that the API server says it has, with v:
// v1.34.4. What a test expects of a cluster can depend on it.
func (cp *ControlPlane) KubernetesVersion() (string, error) {
	info, err := cp.clientset.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the API server for its version: %w", err)
	}
	if !semver.IsValid(info.GitVersion) {
		return "", fmt.Errorf("the API server says that its version is %q", info.GitVersion)
	}
	return info.GitVersion, nil
}
