package packaging

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// The patches in the documentation that tighten an installation apply, and do what
// is said of them.
func TestDocumentedHardening(t *testing.T) {
	folder := t.TempDir()
	kustomization := "resources: [" + relativePath(t, folder, filepath.Join(root, "config", "default")) + "]\npatches:\n"
	for document, marker := range map[string]string{"docs/security.md": "ipBlock", "docs/operating.md": "client-ca"} {
		kustomization += strings.TrimPrefix(documentedPatch(t, document, marker), "patches:\n")
	}
	write(t, filepath.Join(folder, "kustomization.yaml"), kustomization)
	all := decode(t, build(t, folder))

	ingress := find[*networkingv1.NetworkPolicy](t, all, name).Spec.Ingress
	restricted := 0
	for _, rule := range ingress {
		if len(rule.From) == 1 && rule.From[0].IPBlock != nil && rule.Ports[0].Port.StrVal == "webhook" {
			restricted++
		}
	}
	if restricted != 1 {
		t.Errorf("ingress %+v", ingress)
	}

	pod := find[*appsv1.Deployment](t, all, name).Spec.Template.Spec
	mounted := slices.IndexFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "client-ca" })
	volume := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "client-ca" && v.ConfigMap != nil })
	if mounted < 0 || volume < 0 {
		t.Fatalf("volumes %+v, mounts %+v", pod.Volumes, pod.Containers[0].VolumeMounts)
	}
	operating := read(t, "docs/operating.md")
	for _, want := range []string{
		"clientCAFile: " + pod.Containers[0].VolumeMounts[mounted].MountPath + "/ca.crt",
		"create configmap " + pod.Volumes[volume].ConfigMap.Name + " --from-file=ca.crt",
	} {
		if !strings.Contains(operating, want) {
			t.Errorf("docs/operating.md does not say %q", want)
		}
	}
}

var fencedYAML = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?\n) *```")

// documentedPatch returns the block with patches in which the marker is, without
// the indentation that it has in a list.
func documentedPatch(t *testing.T, document, marker string) string {
	t.Helper()
	for _, block := range fencedYAML.FindAllStringSubmatch(read(t, document), -1) {
		text := regexp.MustCompile("(?m)^"+block[1]).ReplaceAllString(block[2], "")
		if strings.HasPrefix(text, "patches:\n") && strings.Contains(text, marker) {
			return text
		}
	}
	t.Fatalf("%s has no patch with %s", document, marker)
	return ""
}
