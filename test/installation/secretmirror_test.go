package installation

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteVolume(t *testing.T) {
	dir := t.TempDir()
	for _, content := range []string{"old", "new"} {
		if err := writeVolume(dir, map[string][]byte{"tls.crt": []byte(content), "tls.key": []byte(content)}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"tls.crt", "tls.key"} {
			got, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || string(got) != content {
				t.Errorf("%s is %q, %v, want %q", name, got, err, content)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	// ..data, one version, two links.
	if len(entries) != 4 {
		t.Errorf("%v, want 4 entries", entries)
	}
}
