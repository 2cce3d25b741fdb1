package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindBase(t *testing.T) {
	changes := map[string]string{"file": "changed"}
	tests := map[string]struct {
		commits []string
		changes map[string]string
		shallow bool
		base    string
		want    string // the subject of the commit
		wantErr string
	}{
		"clean":                {commits: []string{"one", "two", "three"}, want: "two"},
		"changed file":         {commits: []string{"one", "two"}, changes: changes, want: "two"},
		"new file":             {commits: []string{"one", "two"}, changes: map[string]string{"new": ""}, want: "two"},
		"ignored file":         {commits: []string{"one", "two"}, changes: map[string]string{"bin/new": ""}, want: "one"},
		"named":                {commits: []string{"one", "two", "three"}, base: "HEAD~2", want: "one"},
		"named, with changes":  {commits: []string{"one", "two", "three"}, base: "HEAD~1", changes: changes, want: "two"},
		"first, with changes":  {commits: []string{"one"}, changes: changes, want: "one"},
		"shallow, changes":     {commits: []string{"one", "two"}, shallow: true, changes: changes, want: "two"},
		"unknown":              {commits: []string{"one"}, base: "v9", wantErr: `-base: this clone has no commit "v9"`},
		"like an option":       {commits: []string{"one"}, base: "--all", wantErr: `-base: this clone has no commit "--all"`},
		"a file, no commit":    {commits: []string{"one"}, base: "HEAD:file", wantErr: `-base: this clone has no commit "HEAD:file"`},
		"first":                {commits: []string{"one"}, wantErr: "HEAD has no previous commit here, and the working tree has no changes"},
		"shallow":              {commits: []string{"one", "two"}, shallow: true, wantErr: "HEAD has no previous commit here, and the working tree has no changes; the clone is shallow: git fetch --unshallow gets all commits"},
		"shallow, earlier one": {commits: []string{"one", "two"}, shallow: true, base: "HEAD~1", wantErr: `-base: this clone has no commit "HEAD~1"; the clone is shallow: git fetch --unshallow gets all commits`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			root := newRepository(t, map[string]string{"file": "", ".gitignore": "/bin/\n"})
			mustGit(t, root, "commit", "--amend", "--quiet", "-m", tc.commits[0])
			for _, subject := range tc.commits[1:] {
				mustGit(t, root, "commit", "--quiet", "--allow-empty", "-m", subject)
			}
			if tc.shallow {
				clone := filepath.Join(t.TempDir(), "clone")
				mustGit(t, root, "clone", "--quiet", "--depth=1", "file://"+filepath.ToSlash(root), clone)
				root = clone
			}
			write(t, root, tc.changes)
			got, err := findBase(t.Context(), root, tc.base)
			if got.subject != tc.want || errorText(err) != tc.wantErr {
				t.Errorf("got %q, %v", got.subject, err)
			}
		})
	}
}

func TestFindBaseWithoutRepository(t *testing.T) {
	repository := newRepository(t, map[string]string{"folder/file": ""})
	empty := t.TempDir()
	mustGit(t, empty, "init", "--quiet")
	for root, want := range map[string]string{
		t.TempDir():                         `is no git checkout, which a comparison with an earlier commit needs: git rev-parse: `,
		filepath.Join(repository, "folder"): `is no git checkout but folder folder/ of another one; clone the repository`,
		empty:                               `has no commit yet`,
	} {
		_, err := findBase(t.Context(), root, "")
		if !strings.Contains(errorText(err), root+" "+want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What is left of a checkout that git was stopped in, or never made, is removed.
func TestDiscard(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, root, folder string){
		"never made": func(*testing.T, string, string) {},
		"half-made": func(t *testing.T, root, folder string) {
			mustGit(t, root, "worktree", "add", "--quiet", "--detach", folder)
			mustGit(t, root, "worktree", "lock", folder)
			if err := os.Remove(filepath.Join(folder, ".git")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRepository(t, map[string]string{"file": ""})
			temporary := temporaryFolder(t)
			folder := filepath.Join(temporary, "checkout", "base")
			prepare(t, root, folder)
			if err := discard(t.Context(), root, filepath.Dir(folder), folder); err != nil {
				t.Error(err)
			}
			checkRemoved(t, root, temporary)
		})
	}
}
