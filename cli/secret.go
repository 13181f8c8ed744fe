package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"
	"golang.org/x/term"

	"burrow.dev/burrow/cli/render"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway"
	"burrow.dev/burrow/manifest"
)

// secretCommand groups what concerns secrets. None of it shows one.
func secretCommand() *ucli.Command {
	return &ucli.Command{
		Name: "secret", Category: categoryResources, Usage: "store secrets that manifests name, and change the key they are encrypted under",
		Subcommands: []*ucli.Command{
			secretSetCommand(),
			secretListCommand(),
			secretRemoveCommand(),
			secretRotateCommand(),
		},
	}
}

func secretSetCommand() *ucli.Command {
	return &ucli.Command{
		Name: "set", Usage: "store a secret, or give it another value", ArgsUsage: "NAME",
		Description: "The value is read from standard input, less one newline at its end, or from a file as it is; on a\n" +
			"terminal it is asked for, twice, and not shown. It is never an argument: those are seen by everybody\n" +
			"on the machine. A manifest names it as secret:NAME. No command prints it.",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "`PATH` of a file that holds the value", TakesFile: true},
		},
		Action: func(c *ucli.Context) error {
			name := c.Args().First()
			switch {
			case c.NArg() > 1:
				return usageErrorf(c, "name one secret; its value is no argument, and if you have just typed it, choose another: it stands in your shell's history")
			case c.NArg() == 0:
				return usageErrorf(c, "name the secret")
			}
			if err := manifest.CheckSecretName(name); err != nil {
				return usageErrorf(c, "%w", err)
			}
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			value, err := secretValue(c, name)
			if err != nil {
				return err
			}
			created, err := gw.SetSecret(c.Context, name, value, requestedBy())
			if err != nil {
				return err
			}
			if created {
				fmt.Fprintf(c.App.Writer, "secret %s created\n", name)
			} else {
				fmt.Fprintf(c.App.Writer, "secret %s changed\n", name)
			}
			return nil
		},
	}
}

// secretValue reads a value from where it is.
func secretValue(c *ucli.Context, name string) ([]byte, error) {
	object := "secret " + name
	path := c.String("file")
	switch {
	case path != "" && path != "-":
		f, err := os.Open(path)
		if err != nil {
			return nil, errs.NewPermanent(object, "read its value", err, "name a file that you may read")
		}
		defer func() { _ = f.Close() }()
		return readValue(object, f)
	case path == "" && stdinIsTerminal(c):
		return typedTwice(c, name)
	}
	value, err := readValue(object, c.App.Reader)
	if err != nil {
		return nil, err
	}
	text, ended := strings.CutSuffix(string(value), "\n")
	if ended {
		text = strings.TrimSuffix(text, "\r")
	}
	if text == "" {
		return nil, errs.NewPermanent(object, "read its value", errs.Reason("%w: it is empty", errs.ErrInvalid), "write it to standard input, or name its file with --file")
	}
	return []byte(text), nil
}

// readValue reads no more than can be stored; the gateway says what the bound is.
func readValue(object string, r io.Reader) ([]byte, error) {
	value, err := io.ReadAll(io.LimitReader(r, manifest.MaxSecretBytes+2))
	if err != nil {
		return nil, errs.NewPermanent(object, "read its value", err, "")
	}
	return value, nil
}

// typedTwice asks on the terminal without showing what is typed.
func typedTwice(c *ucli.Context, name string) ([]byte, error) {
	first, err := typedUnseen(c, "Value of "+name+": ")
	if err != nil {
		return nil, err
	}
	again, err := typedUnseen(c, "Once more: ")
	if err != nil {
		return nil, err
	}
	if !slices.Equal(first, again) {
		return nil, errs.NewPermanent("secret "+name, "read its value", errs.Reason("the two are not the same; nothing was stored"), "try again")
	}
	return first, nil
}

// typedUnseen reads a line from the terminal; an interrupted one leaves it as it was.
func typedUnseen(c *ucli.Context, prompt string) ([]byte, error) {
	fd := int(c.App.Reader.(*os.File).Fd()) // stdinIsTerminal has seen that it is one
	before, err := term.GetState(fd)
	if err != nil {
		return nil, fmt.Errorf("read from the terminal: %w", err)
	}
	fmt.Fprint(c.App.ErrWriter, prompt)
	defer fmt.Fprintln(c.App.ErrWriter)
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() { // it may wait for its input when we have gone; the process ends then
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case <-c.Context.Done():
		_ = term.Restore(fd, before)
		return nil, c.Context.Err()
	case got := <-read:
		if errors.Is(got.err, io.EOF) {
			return nil, context.Canceled
		}
		return got.text, got.err
	}
}

func secretListCommand() *ucli.Command {
	return &ucli.Command{
		Name: "list", Aliases: []string{"ls"}, Usage: "list the secrets there are; their values are never shown",
		Flags: []ucli.Flag{outputFlag("table", "json", "yaml", "name")},
		Action: func(c *ucli.Context) error {
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			all, err := gw.ListSecrets(c.Context)
			if err != nil {
				return err
			}
			return printSecrets(c, all, time.Now())
		},
	}
}

// secretList is the secrets as one document.
type secretList struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Items      []manifest.Secret `json:"items"`
}

func printSecrets(c *ucli.Context, all []manifest.Secret, now time.Time) error {
	w := c.App.Writer
	document := secretList{manifest.APIVersion, "SecretList", append([]manifest.Secret{}, all...)}
	switch output(c) {
	case "json":
		return printJSON(w, document)
	case "yaml":
		return printYAML(w, document)
	case "name":
		for _, one := range all {
			fmt.Fprintln(w, render.Clean(one.Name))
		}
		return nil
	}
	if len(all) == 0 {
		fmt.Fprintln(c.App.ErrWriter, "there is no secret; store one: burrow secret set NAME")
		return nil
	}
	var rows [][]string
	for _, one := range all {
		key := one.MasterKey
		if !one.Current {
			key += " (old: burrow secret rotate-key)"
		}
		rows = append(rows, []string{one.Name, age(one.SetAt, now), one.SetBy, key})
	}
	return render.Table(w, []string{"NAME", "SET", "BY", "MASTER KEY"}, rows)
}

func secretRemoveCommand() *ucli.Command {
	return &ucli.Command{
		Name: "rm", Aliases: []string{"delete", "remove"}, Usage: "remove secrets that no manifest names any more", ArgsUsage: "NAME ...",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}},
		Action: func(c *ucli.Context) error {
			if c.NArg() == 0 {
				return usageErrorf(c, "name the secrets")
			}
			gw, err := openGateway(c)
			if err != nil {
				return err
			}
			defer func() { _ = gw.Close() }()
			names := slices.Compact(slices.Sorted(slices.Values(c.Args().Slice())))
			if err := secretsExist(c, gw, names); err != nil {
				return err
			}
			if !c.Bool("yes") {
				ok, err := confirm(c, "Remove secret "+strings.Join(names, ", ")+"?")
				if err != nil {
					return err
				}
				if !ok {
					fmt.Fprintln(c.App.Writer, "nothing removed")
					return nil
				}
			}
			var all []error
			for _, name := range names {
				err := gw.RemoveSecret(c.Context, name)
				if err == nil {
					fmt.Fprintf(c.App.Writer, "secret %s removed\n", name)
				}
				all = append(all, err)
			}
			return together(all...)
		},
	}
}

// secretsExist refuses names that there are not, before anything is asked or removed.
func secretsExist(c *ucli.Context, gw *gateway.Client, names []string) error {
	known, err := gw.ListSecrets(c.Context)
	if err != nil {
		return err
	}
	var there []string
	for _, one := range known {
		there = append(there, one.Name)
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			return errs.NewPermanent("secret "+name, "remove", errs.Reason("%w%s", errs.ErrNotFound, didYouMean(name, there)), "`burrow secret list` shows what there is")
		}
	}
	return nil
}
