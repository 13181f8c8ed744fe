package ansiblex

import (
	"strings"

	"github.com/apenella/go-ansible/v2/pkg/playbook"
)

// Command implements go-ansible's Commander: its command line for the play, with more than
// one inventory and the user's own arguments, which it has no options for. Ours come
// after the user's: of an option given twice, Ansible takes the last.
func (p *Prepared) Command() ([]string, error) { return p.arguments(p.limit()) }

// String implements Commander. go-ansible puts it into its error texts, which nobody
// gets to see; the arguments stay out of it all the same.
func (p *Prepared) String() string { return "ansible-playbook" }

// limit names the play's servers; nil where it is limited to none.
func (p *Prepared) limit() []string {
	if p.play.Whole {
		return nil
	}
	names := make([]string, 0, len(p.play.Hosts))
	for _, h := range p.play.Hosts {
		names = append(names, h.Name)
	}
	return names
}

func (p *Prepared) arguments(limit []string) ([]string, error) {
	options := &playbook.AnsiblePlaybookOptions{
		Limit:       strings.Join(limit, ","),
		Tags:        strings.Join(p.play.Tags, ","),
		SkipTags:    strings.Join(p.play.SkipTags, ","),
		SyntaxCheck: p.play.SyntaxCheck,
	}
	if len(p.play.ExtraVars) > 0 {
		options.ExtraVarsFile = []string{"@" + p.folder.Path(varsFile)}
	}
	if p.play.VaultPassword != "" {
		options.VaultPasswordFile = p.folder.Path(vaultFile)
	}
	cmd, err := playbook.NewAnsiblePlaybookCmd(
		playbook.WithBinary(program), playbook.WithPlaybooks(p.play.Playbooks...), playbook.WithPlaybookOptions(options),
	).Command()
	if err != nil {
		return nil, err
	}
	args := append([]string{cmd[0]}, p.play.ExtraArgs...)
	for _, source := range p.inventories {
		args = append(args, playbook.InventoryFlag, source)
	}
	if p.play.BecomePassword != "" { // go-ansible has no option for it
		args = append(args, "--become-password-file", p.folder.Path(becomeFile))
	}
	return append(args, cmd[1:]...), nil
}

const program = "ansible-playbook"

// attempt is the play limited to some of its hosts: go-ansible's Commander for one try.
type attempt struct {
	*Prepared
	hosts []string
}

// Command see Prepared.
func (a attempt) Command() ([]string, error) { return a.arguments(a.hosts) }
