package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/ansiblex"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/internal/plaintext"
	"burrow.dev/burrow/manifest"
)

// inventoryTimeout bounds what a script that is an inventory may take, for which somebody
// waits at a shell.
const inventoryTimeout = time.Minute

// runInventory shows the inventory that a run of a server's playbook, or of a Playbook, has.
func runInventory(c *ucli.Context) error {
	ref := Ref{manifest.KindServer, c.String("for")}
	if strings.Contains(ref.Name, "/") {
		kind, name, err := manifest.ParseKindName(ref.Name)
		if err != nil {
			return usageErrorf(c, "%w", err)
		}
		ref = Ref{kind, name}
	}
	gw, err := openGateway(c)
	if err != nil {
		return err
	}
	defer gw.Close()
	spec, digest, hosts, err := playbookOf(c.Context, gw, ref)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := gw.DownloadBundle(c.Context, digest, &archive); err != nil {
		return errs.New(errs.ClassOf(err), ref.String(), "get its playbook's folder", err, "")
	}
	shown, err := effectiveInventory(c.Context, ref, spec, hosts, &archive)
	if err != nil {
		return err
	}
	if output(c) == "json" {
		return printJSON(c.App.Writer, shown)
	}
	return printInventory(c.App.Writer, ref, shown)
}

// playbookOf gives what a run for ref would be: what runs, from which bundle, on which servers.
func playbookOf(ctx context.Context, gw *gateway.Client, ref Ref) (spec manifest.Ansible, digest string, hosts []ansiblex.Host, err error) {
	if ref.Kind != manifest.KindServer && ref.Kind != manifest.KindPlaybook {
		return spec, "", nil, errs.NewPermanent(ref.String(), "show its inventory", errs.Reason("only servers and Playbooks have one"), "")
	}
	rec, err := look(ctx, gw, ref)
	if err != nil {
		return spec, "", nil, err
	}
	add := func(rec manifest.Record) error {
		h, err := inventoryHost(rec)
		h.Addresses, h.Hypervisor, h.Phase = nil, "", "" // a run has none of these
		hosts = append(hosts, h)
		return err
	}
	if ref.Kind == manifest.KindServer {
		var server manifest.ServerSpec
		if err := json.Unmarshal(rec.Spec, &server); err != nil {
			return spec, "", nil, errs.NewPermanent(ref.String(), "read its record", err, "restore the record from a backup")
		}
		if server.Ansible == nil || rec.Status.Bundle == "" && !server.Ansible.InGuest() {
			return spec, "", nil, errs.NewPermanent(ref.String(), "show its inventory", errs.Reason("it has no playbook"), "`burrow inventory --list` has all servers")
		}
		if server.Ansible.InGuest() {
			return spec, "", nil, errs.NewPermanent(ref.String(), "show its inventory", errs.Reason("its playbook runs in the guest, with the server alone"), "")
		}
		return *server.Ansible, rec.Status.Bundle, hosts, add(rec)
	}
	var several manifest.PlaybookSpec
	if err := json.Unmarshal(rec.Spec, &several); err != nil || rec.Status.Bundle == "" {
		return spec, "", nil, errs.NewPermanent(ref.String(), "show its inventory", errs.Reason("its record has no playbook that ran"), "apply it again")
	}
	err = gw.Each(ctx, manifest.KindServer, func(server manifest.Record) error {
		if !several.Targets.Matches(server.Metadata.Name, server.Metadata.Labels) {
			return nil
		}
		return add(server)
	})
	slices.SortFunc(hosts, func(a, b ansiblex.Host) int { return strings.Compare(a.Name, b.Name) })
	return several.Ansible, rec.Status.Bundle, hosts, err
}

// effectiveInventory has Ansible read it, with the caller's rights, in a folder that is gone afterwards.
func effectiveInventory(ctx context.Context, ref Ref, spec manifest.Ansible, hosts []ansiblex.Host, archive io.Reader) (shown ansiblex.Effective, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, inventoryTimeout,
		errs.NewPermanent(ref.String(), "show its inventory", errs.Reason("Ansible has not read it within %s", inventoryTimeout), "does it start a script that waits for something?"))
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return shown, err
	}
	err = inScratch(ref.String(), archive, func(folder *ansiblex.Folder) error {
		play := ansiblex.PlayOf(spec)
		// Variables of the manifest are no part of an inventory, and may name secrets.
		play.Hosts, play.Burrow, play.ExtraVars = hosts, self, nil
		if shown, err = folder.Effective(ctx, play); err != nil {
			return errs.New(errs.ClassOf(err), ref.String(), "show its inventory", err, "")
		}
		return nil
	})
	return shown, err
}

// always are connection variables that everybody asks for; the others are shown when they
// override something.
var always = []string{"ansible_host", "ansible_port", "ansible_user"}

func printInventory(w io.Writer, ref Ref, e ansiblex.Effective) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: inventory of a run: %s\n", ref, strings.Join(append(slices.Clone(e.Sources), "burrow's own"), ", then "))
	for _, name := range e.Encrypted {
		fmt.Fprintf(&b, "%s is encrypted and counts as empty here\n", name)
	}
	fmt.Fprintf(&b, "\ngroups\n")
	for _, name := range slices.Sorted(maps.Keys(e.Groups)) {
		members := slices.Sorted(slices.Values(e.Groups[name].Hosts))
		for _, child := range slices.Sorted(slices.Values(e.Groups[name].Children)) {
			members = append(members, "@"+child)
		}
		fmt.Fprintf(&b, "  %s: %s\n", name, strings.Join(members, ", "))
	}
	for _, host := range slices.Sorted(maps.Keys(e.Hosts)) {
		fmt.Fprintf(&b, "\n%s\n", host)
		more := 0
		for _, v := range e.Hosts[host] {
			if v.Ours && len(v.Overridden) == 0 && !slices.Contains(always, v.Name) {
				more++
				continue
			}
			text, err := valueText(v.Value)
			if err != nil {
				return err
			}
			switch {
			case len(v.Overridden) > 0:
				text += "   # burrow's, not that of " + strings.Join(v.Overridden, ", ")
			case v.Ours:
				text += "   # burrow's"
			}
			fmt.Fprintf(&b, "  %s: %s\n", v.Name, text)
		}
		if more > 0 {
			fmt.Fprintf(&b, "  and %d that say how burrow reaches it: -o json has them\n", more)
		}
	}
	_, err := io.WriteString(w, plaintext.Lines(b.String()))
	return err
}

// valueText is a variable's value on one line.
func valueText(value any) (string, error) {
	if text, ok := value.(string); ok && !strings.ContainsAny(text, "\n\"") && text != "" {
		return text, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return strings.TrimSpace(b.String()), err
}
