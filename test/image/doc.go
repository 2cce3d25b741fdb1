// Command image makes the container image without a container engine: a layer
// with the static binary for each platform, nothing else, since the binary needs
// neither a shell nor files of a base. There is nothing to pull.
//
//	image build -output image.tar linux/amd64=FILE linux/arm64=FILE
//	image push -archive image.tar registry.example.com/gpu-binpacker:v0.1.0
//
// The archive is an OCI image layout in a tar file. The same binaries, version,
// revision and time give the same bytes and so the same digest. Entrypoint, user,
// command and labels are those of the Dockerfile; a test compares them.
//
// Files in reading order:
//
//   - main.go: START HERE, the two commands and their flags.
//   - build.go: binaries become layers, images and an index.
//   - archive.go: the index to and from a tar file.
//   - check.go: what must be true of an archive before anyone gets it.
//   - push.go: the archive to a registry.
//
// Folder release makes the other files of a release.
package main
