package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"
)

func stdoutIsTerminal(c *ucli.Context) bool { return isTerminal(c.App.Writer) }

func stdinIsTerminal(c *ucli.Context) bool { return isTerminal(c.App.Reader) }

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// confirm asks a yes-or-no question; anything but yes is no. Without a terminal nobody
// can answer, which is an error.
func confirm(c *ucli.Context, question string) (bool, error) {
	if !stdinIsTerminal(c) {
		return false, usageErrorf(c, "%s Nobody can answer here: say yes with -y", question)
	}
	fmt.Fprintf(c.App.ErrWriter, "%s [y/N] ", question)
	answer, err := bufio.NewReader(c.App.Reader).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

// requestedBy names who asks, for the record: the user behind sudo, else the current one.
func requestedBy() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", os.Getuid())
}
