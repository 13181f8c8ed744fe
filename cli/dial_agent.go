package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/gateway"
)

// agentName is what a socket's path may consist of, so that it means itself in
// ssh_config (% and $) and in Ansible's templates.
var agentName = regexp.MustCompile(`^/[A-Za-z0-9/._+@-]+$`)

// agentSocketMost leaves room in a socket's path (108 bytes) for the process's number.
const agentSocketMost = 96

// agentSocketOf is where `burrow dial --agent` serves the management key of a server to the
// user's ssh, which must know the path before the socket is there; "" where no path will do.
func agentSocketOf(uid string) string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(uid))
	path := filepath.Join(cache, "burrow", "agent", hex.EncodeToString(sum[:6]))
	if len(path) > agentSocketMost || !agentName.MatchString(path) {
		return ""
	}
	return path
}

// lendAgent serves a server's management key on socket while the connection lasts. ssh
// asks there only after it has spoken with the server, hence after this. Of two
// connections to one server the later one's socket has the name; both have the same key.
// Without it ssh goes on with the user's own keys.
func lendAgent(c *ucli.Context, gw *gateway.Client, server, socket string) (end func()) {
	own := fmt.Sprintf("%s.%d", socket, os.Getpid())
	agent, err := lend(c, gw, server, socket, own)
	if err != nil {
		fmt.Fprintf(c.App.ErrWriter, "burrow: only your own keys log in: %v\n", err)
		return func() {}
	}
	return func() {
		_ = os.Remove(own)
		agent.close()
	}
}

func lend(c *ucli.Context, gw *gateway.Client, server, socket, own string) (*agentBridge, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, err
	}
	_ = os.Remove(own) // of a process that had our number
	agent, err := serveAgent(c.Context, gw, server, own, os.Getenv("SSH_AUTH_SOCK"))
	if err != nil {
		return nil, err
	}
	// A symlink, so that who ends last takes nothing away that another has put there.
	link := own + ".link"
	err = os.Symlink(own, link)
	if err == nil {
		err = os.Rename(link, socket)
	}
	if err != nil {
		_ = os.Remove(link)
		agent.close()
		return nil, err
	}
	return agent, nil
}
