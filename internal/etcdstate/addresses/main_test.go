package addresses

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs a worker process of the fault test when it is started as one.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) != "" {
		if err := runWorker(os.Getenv(workerEnv), os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
