// Command gpu-binpacker is a mutating admission webhook that makes the default
// scheduler pack GPU pods. See README.md.
package main

import (
	"os"

	"github.com/gpu-binpacker/gpu-binpacker/cli"
)

func main() {
	os.Exit(cli.Main())
}
