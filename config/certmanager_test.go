package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"sigs.k8s.io/yaml"
)

// The issuers and certificates have no misspelt field, and each certificate names
// an issuer that is there. What they must say is tested in test/packaging.
func TestCertificates(t *testing.T) {
	issuers := map[string]bool{}
	var certificates []certmanagerv1.Certificate
	files, err := filepath.Glob("certmanager/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(content, []byte("\n---\n")) {
			var kind struct{ Kind string }
			if err := yaml.Unmarshal(document, &kind); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			switch kind.Kind {
			case "Issuer":
				issuer := certmanagerv1.Issuer{}
				if err := yaml.UnmarshalStrict(document, &issuer); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				issuers[issuer.Name] = true
			case "Certificate":
				certificate := certmanagerv1.Certificate{}
				if err := yaml.UnmarshalStrict(document, &certificate); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				certificates = append(certificates, certificate)
			}
		}
	}
	if len(certificates) == 0 {
		t.Fatal("no certificate")
	}
	for _, c := range certificates {
		if !issuers[c.Spec.IssuerRef.Name] {
			t.Errorf("certificate %s names the issuer %q, there are %v", c.Name, c.Spec.IssuerRef.Name, issuers)
		}
	}
}
