// Command burrow builds servers on KVM hosts: the command line and the workers.
package main

import (
	"context"
	"os"

	"burrow.dev/burrow/cli"
)

func main() { os.Exit(cli.Main(context.Background(), os.Args)) }
