// Command program stands for gpu-binpacker in tests: small, and quick to build.
package main

import (
	"os"
)

var version string

func main() {
	if len(os.Args) == 2 && os.Args[1] == "version" {
		os.Stdout.WriteString(version + "\n")
	}
}
