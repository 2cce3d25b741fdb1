package main

import (
	"context"
	"fmt"
	"io"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// push pushes the archive to reference, which must name registry, repository and
// tag. Credentials are those that docker login, or podman login, has stored. What
// the registry then has under the tag must have the digest of the archive.
func push(ctx context.Context, archive, reference string, out io.Writer) error {
	tag, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("IMAGE must be REGISTRY/REPOSITORY:TAG: %w", err)
	}
	index, remove, err := readArchive(archive)
	if err != nil {
		return err
	}
	defer remove()
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("reading %s: %w", archive, err)
	}
	with := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.WriteIndex(tag, index, with...); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	pushed, err := remote.Head(tag, with...)
	if err != nil {
		return fmt.Errorf("reading %s after the push: %w", tag, err)
	}
	if pushed.Digest != digest {
		return fmt.Errorf("the registry has %s as %s, but %s was pushed", tag, pushed.Digest, digest)
	}
	fmt.Fprintf(out, "%s@%s\n", tag, digest)
	return nil
}
