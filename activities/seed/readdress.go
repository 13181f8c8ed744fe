package seed

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"burrow.dev/burrow/internal/cloudinit"
	"burrow.dev/burrow/internal/errs"
)

// Readdress writes a seed that tells the guest of other NICs and is else like the one it
// has. The same input gives the same file.
//
// That seed is gone → Operator.
func (a *Activities) Readdress(_ context.Context, in ReaddressIn) (ReaddressOut, error) {
	const action = "write seed"
	if err := checkUID(in.Server); err != nil {
		return ReaddressOut{}, err
	}
	// Only a name of its own: a path from elsewhere is never opened.
	was := filepath.Join(a.cfg.Dir, filepath.Base(in.Seed))
	if !owned(filepath.Base(was), in.Server.UID) {
		return ReaddressOut{}, errs.NewPermanent(in.Server.Ref(), action,
			errs.Reason("%w: %s is no seed of this server", errs.ErrInvalid, in.Seed), "report this with the server's record")
	}
	old, err := os.Open(was)
	if errors.Is(err, fs.ErrNotExist) {
		return ReaddressOut{}, errs.NewOperator(in.Server.Ref(), action, errors.Join(errs.ErrNotFound, err),
			"rebuild the server, which writes it anew: burrow rebuild "+in.Server.Name)
	}
	if err != nil {
		return ReaddressOut{}, fileError(in.Server, action, err)
	}
	defer old.Close()
	own := ""
	if in.CloudInit != nil {
		own = in.CloudInit.NetworkConfig
	}
	seed, err := cloudinit.ReadISO(old)
	if err == nil {
		seed, err = seed.Readdressed(in.Ports, own)
	}
	if err != nil {
		return ReaddressOut{}, about(in.Server, action, err)
	}
	path := a.path(in.Server, seed)
	if err := writeOnce(path, seed); err != nil {
		return ReaddressOut{}, fileError(in.Server, action, err)
	}
	return ReaddressOut{Path: path}, nil
}
