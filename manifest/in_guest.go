package manifest

// Pull is a playbook that a guest fetches by git.
type Pull struct {
	URL string `json:"url"` // as the guest reaches it
}

// InGuest reports whether the playbook runs inside the guest.
func (a Ansible) InGuest() bool { return a.Pull != nil || a.RemotePlaybook }

// inGuest brings what runs inside the guest into its normal form.
func (d *decoder) inGuest(in ansibleInput, path string) *Ansible {
	d.outsideOnly(in, path)
	d.extraArgs(path+".extra-args", in.ExtraArgs)
	eachSecret("", in.ExtraVars, func(name, _ string) {
		d.complainCut(path+".extraVars"+name, -1, noSecretInGuest, fetchItThere)
	})
	a := &Ansible{
		ExtraArgs: in.ExtraArgs, ExtraVars: in.ExtraVars, Tags: in.Tags, SkipTags: in.SkipTags,
		Retries: in.Retries, Timeout: in.Timeout, OnFailure: in.OnFailure,
	}
	if in.Pull == nil {
		d.localPath(path+".remotePlaybook", &in.RemotePlaybook)
		a.RemotePlaybook, a.Playbook = true, []string{in.RemotePlaybook}
		return a
	}
	if in.RemotePlaybook != "" {
		d.complain(path+".remotePlaybook", "is beside pull, and one playbook runs in the guest", "remove one of the two")
	}
	if d.doc.sound(path + ".pull.url") {
		if _, err := GitProtocol(in.Pull.URL); err != nil {
			d.complainCut(path+".pull.url", 1, err.Error(), writeGitURL)
		}
	}
	d.repositoryPath(path+".pull.playbook_yaml", &in.Pull.Playbook)
	a.Pull, a.Playbook = &Pull{URL: in.Pull.URL}, []string{in.Pull.Playbook}
	return a
}

const (
	noSecretInGuest = "is a secret, and what runs in the guest would have it in its seed"
	fetchItThere    = "let the playbook fetch it, from a place to which the server has access; or use playbook, which runs from outside"
)

// outsideOnly refuses what only a run from outside has.
func (d *decoder) outsideOnly(in ansibleInput, path string) {
	for _, field := range []struct {
		name    string
		set     bool
		says    string
		instead string
	}{
		{"playbook", len(in.Playbook) > 0, "runs from outside, and beside it is one that runs in the guest", "remove one of the two; what should run later, a Playbook document can"},
		{"source", in.Source != nil, "is for what runs from outside", "use pull"},
		{"inventory", in.Inventory != "", "is for what runs from outside: in the guest there is the server alone", "remove it"},
		{"requirements", in.Requirements != "", "is for what runs from outside", "keep the roles and collections in the playbook's folder"},
		{"vaultPassword", in.VaultPassword != "", noSecretInGuest, fetchItThere},
		{"becomePassword", in.BecomePassword != "", noSecretInGuest, "remove it: what runs in the guest runs as root"},
	} {
		if field.set && d.doc.sound(path+"."+field.name) {
			d.complainCut(path+"."+field.name, -1, field.says, field.instead)
		}
	}
}
