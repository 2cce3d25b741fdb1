// Command release makes the files of a release beside the image:
//
//	release archives -version v0.1.0 -license LICENSE -output DIR linux/amd64=FILE ...
//	release krew -version v0.1.0 -template .krew.yaml -archives DIR -output FILE
//	release chart -version v0.1.0 -image REPOSITORY:TAG@DIGEST -chart DIR -output DIR
//	release sbom -version v0.1.0 -output DIR linux/amd64=FILE ...
//	release checksums DIR
//
// The same input gives the same bytes.
//
// Files in reading order:
//
//   - main.go: START HERE, the commands and their flags.
//   - archives.go: the command line as a kubectl plugin, one archive a platform.
//   - krew.go: the plugin's manifest with the archives' checksums.
//   - chart.go: the chart's package, which refers to the image by digest.
//   - sbom.go: what each binary consists of.
//   - checksums.go: the checksums of all files.
package main
