package cli

import (
	"fmt"
	"os"
	"path/filepath"

	ucli "github.com/urfave/cli/v2"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/playbook"
)

// inventoryPluginFile is the plugin's file: Ansible knows a plugin by its file's name.
const inventoryPluginFile = "burrow.py"

// writeInventoryPlugin writes the plugin into a folder where Ansible looks for it.
func writeInventoryPlugin(c *ucli.Context) error {
	dir := c.String("plugin")
	path := filepath.Join(dir, inventoryPluginFile)
	refuse := func(err error) error {
		return errs.NewPermanent("inventory plugin "+path, "write", err, "name a folder that you may write to; Ansible looks into ~/.ansible/plugins/inventory")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return refuse(err)
	}
	// Beside it and renamed: an Ansible that reads it meanwhile reads all of one.
	tmp, err := os.CreateTemp(dir, ".burrow-*")
	if err != nil {
		return refuse(err)
	}
	defer os.Remove(tmp.Name()) // gone when it was renamed
	_, err = tmp.Write(playbook.InventoryPlugin())
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return refuse(err)
	}
	_, err = fmt.Fprintf(c.App.Writer, "wrote %s; use it with a file burrow.yml that says `plugin: burrow`\n", path)
	return err
}
