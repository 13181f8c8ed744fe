package ansiblex

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/plaintext"
)

const (
	inventoryProgram = "ansible-inventory"
	// maxAnswer bounds what ansible-inventory may say: an inventory of ten thousand hosts has
	// less, and a script may say anything.
	maxAnswer = 64 << 20
)

// answer is what `ansible-inventory --list` says: groups, and all variables of each host.
type answer struct {
	groups map[string]ScriptGroup
	hosts  map[string]map[string]any
}

// ask has Ansible read inventories, as the run's user and in its environment, to which more
// is added. Permanent: it refuses them.
func (p *Prepared) ask(ctx context.Context, inventories []string, args []string, more ...string) (answer, error) {
	path, err := exec.LookPath(inventoryProgram)
	if err != nil {
		return answer{}, errs.NewOperator(inventoryProgram, "find", err, "install the package ansible-core")
	}
	for _, source := range inventories {
		args = append(args, "-i", source)
	}
	text, err := p.output(ctx, path, append(args, "--list"), more)
	if err != nil {
		return answer{}, err
	}
	return parseAnswer(text)
}

// output runs a program and gives what it prints. All that it started has ended then.
func (p *Prepared) output(ctx context.Context, path string, args, more []string) ([]byte, error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	l := p.folder.launcher(append(p.folder.environment(p.cfgPath, p.cfg, p.galaxy), more...))
	l.events = null
	l.CommandContext(ctx, path, args...)
	out, err := l.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	errOut, err := l.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	defer errOut.Close()
	if err := l.process.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", inventoryProgram, err)
	}
	complaints := make(chan []byte, 1)
	go func() { complaints <- readUpTo(errOut, maxMessage) }()
	text := readUpTo(out, maxAnswer)
	said := <-complaints
	_ = l.process.Wait() // its result says more
	code, signalled, err := l.process.result()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	case signalled:
		return nil, errs.NewTransient(inventoryProgram, "run", errs.Reason("it was killed (out of memory?)"))
	case code != 0:
		return nil, errs.NewPermanent("inventory", "read", errs.Reason("Ansible refuses it: %s",
			strings.Join(strings.Fields(complaint(p.folder, code, said)), " ")), "mend it")
	}
	return text, nil
}

// readUpTo reads all and keeps the first bytes: who writes must not be blocked.
func readUpTo(r io.Reader, most int64) []byte {
	text, _ := io.ReadAll(io.LimitReader(r, most))
	_, _ = io.Copy(io.Discard, r)
	return text
}

func parseAnswer(text []byte) (answer, error) {
	refuse := func(err error) (answer, error) {
		return answer{}, errs.NewPermanent("inventory", "read what "+inventoryProgram+" says of it", err, "")
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &raw); err != nil {
		return refuse(err)
	}
	a := answer{groups: map[string]ScriptGroup{}}
	for name, content := range raw {
		if name == "_meta" {
			var meta ScriptMeta
			if err := json.Unmarshal(content, &meta); err != nil {
				return refuse(err)
			}
			a.hosts = meta.HostVars
			continue
		}
		var g ScriptGroup
		if err := json.Unmarshal(content, &g); err != nil {
			return refuse(errors.Join(fmt.Errorf("group %s", plaintext.Line(name, maxMessage)), err))
		}
		a.groups[name] = g
	}
	return a, nil
}
