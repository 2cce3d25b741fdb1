package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// commit is what the working tree is compared with.
type commit struct {
	hash, short, subject string
}

// findBase finds the commit of that name. Without a name it is the one before HEAD,
// or HEAD itself if the working tree has changes or new files.
func findBase(ctx context.Context, root, name string) (commit, error) {
	inside, err := git(ctx, root, "rev-parse", "--show-prefix")
	if err != nil {
		return commit{}, fmt.Errorf("%s is no git checkout, which a comparison with an earlier commit needs: %w", root, err)
	}
	if inside != "" {
		return commit{}, fmt.Errorf("%s is no git checkout but folder %s of another one; clone the repository to compare commits", root, inside)
	}
	if _, err := resolve(ctx, root, "HEAD"); err != nil {
		return commit{}, fmt.Errorf("%s has no commit yet, so that there is nothing to compare with", root)
	}
	if name != "" {
		found, err := resolve(ctx, root, name)
		if err != nil {
			return commit{}, fmt.Errorf("-base: this clone has no commit %q%s", name, fetchHint(ctx, root))
		}
		return found, nil
	}
	changes, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return commit{}, err
	}
	if changes != "" {
		return resolve(ctx, root, "HEAD")
	}
	found, err := resolve(ctx, root, "HEAD~1")
	if err != nil {
		return commit{}, fmt.Errorf("HEAD has no previous commit here, and the working tree has no changes%s", fetchHint(ctx, root))
	}
	return found, nil
}

func resolve(ctx context.Context, root, name string) (commit, error) {
	hash, err := git(ctx, root, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	if err != nil {
		return commit{}, err
	}
	line, err := git(ctx, root, "log", "-1", "--no-show-signature", "--format=%h %s", hash)
	if err != nil {
		return commit{}, err
	}
	short, subject, _ := strings.Cut(line, " ")
	return commit{hash, short, subject}, nil
}

// fetchHint says how a shallow clone, as those of CI are, gets earlier commits.
func fetchHint(ctx context.Context, root string) string {
	if shallow, _ := git(ctx, root, "rev-parse", "--is-shallow-repository"); shallow == "true" {
		return "; the clone is shallow: git fetch --unshallow gets all commits"
	}
	return ""
}

// checkout adds a worktree of the commit in a folder that does not exist yet.
func checkout(ctx context.Context, root string, c commit, folder string) error {
	// The user's hooks are for checkouts that the user makes.
	if _, err := git(ctx, root, "-c", "core.hooksPath="+os.DevNull, "worktree", "add", "--detach", folder, c.hash); err != nil {
		return fmt.Errorf("checking out %s: %w", c.short, err)
	}
	return nil
}

// discard removes the temporary folder and makes git forget the worktree at folder,
// which is inside; also when ctx is over, and when the worktree is half-made or was
// never made.
func discard(ctx context.Context, root, temporary, folder string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	// A second Ctrl-C, which a terminal sends to git as well, must not end this
	// half-way. Child processes inherit what is ignored.
	signal.Ignore(stopSignals...)
	defer signal.Reset(stopSignals...)
	if err := os.RemoveAll(temporary); err != nil {
		return fmt.Errorf("removing %s, which git worktree prune must follow: %w", temporary, err)
	}
	// Forced twice, since a worktree is locked while it is being made.
	_, err := git(ctx, root, "worktree", "remove", "--force", "--force", folder)
	if err == nil {
		return nil
	}
	list, listErr := git(ctx, root, "worktree", "list", "--porcelain")
	if listErr == nil && !strings.Contains(list, filepath.ToSlash(folder)) {
		return nil
	}
	return fmt.Errorf("the worktree %s is still listed, run git worktree prune: %w", folder, err)
}
