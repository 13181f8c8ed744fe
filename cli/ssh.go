package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// sshCommand logs in to a server with the system's ssh.
func sshCommand() *ucli.Command {
	return &ucli.Command{
		Name: "ssh", Category: categoryServers, Usage: "log in to a server", ArgsUsage: "[USER@]NAME [-- SSH ARGUMENTS]",
		Description: "Runs ssh through the gateway, so servers on isolated networks are reached too, with the server's\n" +
			"pinned host key, and with its management key beside your own. The exit code is ssh's.\n" +
			"  burrow ssh db -- uptime\n  burrow ssh db -- -L 8080:localhost:80",
		Action: runSSH,
	}
}

func runSSH(c *ucli.Context) error {
	user, name, rest, err := loginArg(c)
	if err != nil {
		return err
	}
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer func() { _ = gw.Close() }()
	rec, err := gw.Get(c.Context, manifest.KindServer, name)
	if err != nil {
		return err
	}
	if len(rec.Status.HostKeys) == 0 {
		return errs.New(errs.Transient, "server/"+name, "log in", errs.Reason("it has no host key yet (it is %s)", rec.Status.Phase),
			"follow it until it is ready: burrow watch server/"+name)
	}
	if user == "" && !namesUser(rest) {
		user = rec.Status.Login
	}
	program, err := exec.LookPath("ssh")
	if err != nil {
		return errs.NewPermanent("server/"+name, "log in", err, "install the OpenSSH client: apt-get install openssh-client")
	}
	session, err := newSSHSession(c, gw, rec)
	if err != nil {
		return err
	}
	defer session.close()
	args := session.options()
	if user != "" {
		args = append(args, "-l", user)
	}
	return session.run(c, program, append(append(args, name), rest...))
}

// loginArg reads [USER@]NAME.
func loginArg(c *ucli.Context) (user, name string, rest []string, err error) {
	words := slices.Clone(c.Args().Slice())
	if len(words) > 0 {
		if before, after, ok := strings.Cut(words[0], "@"); ok {
			user, words[0] = before, after
		}
	}
	name, rest, err = parseServer(c, words)
	return user, name, rest, err
}

// sshValued are ssh's flags that take a value.
const sshValued = "BbcDEeFIiJLlmOoPpQRSWw"

// namesUser reports whether ssh's own arguments, which end where the remote command
// begins, say who logs in: -l USER or -o User=USER.
func namesUser(args []string) bool {
	for i := 0; i < len(args) && len(args[i]) > 1 && args[i][0] == '-'; i++ {
		letters := args[i][1:]
		at := strings.IndexAny(letters, sshValued)
		if at < 0 {
			continue
		}
		value := letters[at+1:]
		if value == "" && i+1 < len(args) {
			i++
			value = args[i]
		}
		option := strings.ToLower(strings.TrimSpace(value))
		if letters[at] == 'l' || letters[at] == 'o' && strings.HasPrefix(option, "user=") {
			return true
		}
	}
	return false
}

// sshSession is what one run of ssh needs: a private folder with the known hosts and the
// agent's socket in it, gone when the run ends.
type sshSession struct {
	dir   string
	proxy string
	uid   string
	agent *agentBridge
}

func newSSHSession(c *ucli.Context, gw *gateway.Client, rec manifest.Record) (*sshSession, error) {
	object := "server/" + rec.Metadata.Name
	proxy, err := proxyCommand(c, rec.Metadata.Name)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "burrow-ssh-") // 0700
	if err != nil {
		return nil, errs.NewPermanent(object, "make a private folder", err, "free space in "+os.TempDir())
	}
	s := &sshSession{dir: dir, proxy: proxy, uid: rec.Metadata.UID}
	if err := os.WriteFile(s.knownHosts(), []byte(knownHostLines(rec)), 0o600); err != nil {
		s.close()
		return nil, errs.NewPermanent(object, "write its known host keys", err, "free space in "+os.TempDir())
	}
	// Ctrl-C in a session is ssh's business: it must not take the keys away.
	s.agent, err = serveAgent(context.WithoutCancel(c.Context), gw, rec.Metadata.Name, s.socket(), os.Getenv("SSH_AUTH_SOCK"))
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *sshSession) knownHosts() string { return filepath.Join(s.dir, "known_hosts") }

func (s *sshSession) socket() string { return filepath.Join(s.dir, "agent") }

func (s *sshSession) close() {
	if s.agent != nil {
		s.agent.close()
	}
	_ = os.RemoveAll(s.dir)
}

// options make ssh trust the pinned key and nothing else, whatever the user's own
// configuration says: the first value ssh meets wins. Nothing is keyed by address or
// name, since two networks may have the same ones (pitfall 68).
func (s *sshSession) options() []string {
	var args []string
	for _, option := range []string{
		"ProxyCommand=" + s.proxy,
		"HostKeyAlias=" + s.uid,
		"UserKnownHostsFile=" + s.knownHosts(),
		"GlobalKnownHostsFile=/dev/null",
		"KnownHostsCommand=none",
		"StrictHostKeyChecking=yes",
		"CheckHostIP=no",
		"VerifyHostKeyDNS=no",
		"UpdateHostKeys=no",
		"CanonicalizeHostname=no",
		"ControlMaster=no",
		"ControlPath=none",
		"IdentityAgent=" + s.socket(),
		"IdentitiesOnly=no",
	} {
		args = append(args, "-o", option)
	}
	return args
}

// run runs ssh on our own streams. Signals from the terminal reach ssh by themselves;
// those sent to us are passed on, and the private folder goes in any case.
func (s *sshSession) run(c *ucli.Context, program string, args []string) error {
	cmd := exec.Command(program, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.App.Reader, c.App.Writer, c.App.ErrWriter
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return errs.NewPermanent("ssh", "start", err, "")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGTERM || sig == syscall.SIGHUP {
				_ = cmd.Process.Signal(sig)
			}
		case err := <-ended:
			return sshExit(err)
		}
	}
}

// sshExit passes ssh's exit code on; it has printed what went wrong itself.
func sshExit(err error) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return errs.NewPermanent("ssh", "run", err, "")
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return &ExitError{Code: 128 + int(ws.Signal())}
	}
	return &ExitError{Code: exit.ExitCode()}
}

// knownHostLines are the pinned keys under the name that HostKeyAlias gives.
func knownHostLines(rec manifest.Record) string {
	var b strings.Builder
	for _, key := range rec.Status.HostKeys {
		fmt.Fprintf(&b, "%s %s\n", rec.Metadata.UID, key)
	}
	return b.String()
}

// proxyCommand is this program's own dial, quoted for the shell and for ssh's percent
// expansion (%p stays: it is the port).
func proxyCommand(c *ucli.Context, server string) (string, error) {
	self, err := selfCommand(c)
	if err != nil {
		return "", err
	}
	return self + " dial " + server + " %p", nil
}

// selfCommand is this program with its configuration, as one shell word each.
func selfCommand(c *ucli.Context) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's own path: %w", err)
	}
	cfg, err := filepath.Abs(c.String("config"))
	if err != nil {
		return "", fmt.Errorf("find the configuration's path: %w", err)
	}
	return shellWord(self) + " --config " + shellWord(cfg), nil
}

func shellWord(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "%", "%%").Replace(s) + "'"
}
