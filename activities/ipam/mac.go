package ipam

import (
	"context"
	"fmt"

	"burrow.dev/burrow/activities"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

const (
	// macFolder holds macs/<mac>, with its owner "<server uid>/<nic>".
	macFolder = "macs"
	// macTries is how many derived MACs a NIC may try: of 2^24, even 10,000 servers' NICs
	// leave each try a chance of over 99.9 %.
	macTries = 5
)

// claimMACs gives every NIC a MAC that no other NIC has: the one it asks for, or one of those
// derived from the server's uid and the NIC's name: that which it has, or the first free one.
func (a *Activities) claimMACs(ctx context.Context, server activities.Server, nics []manifest.NIC) ([]string, error) {
	macs := make([]string, len(nics))
	for i, nic := range nics {
		mac, err := a.registry.OwnOne(ctx, macFolder, macOwner(server, nic), candidates(server, nic)...)
		if err != nil {
			return nil, err
		}
		if mac == "" {
			return nil, errs.NewPermanent(nicRef(server, nic), "claim its MAC address",
				fmt.Errorf("%w: another NIC has %s", errs.ErrExists, candidates(server, nic)[0]), "give it another mac, or leave mac out")
		}
		macs[i] = mac
	}
	return macs, nil
}

func (a *Activities) releaseMACs(ctx context.Context, server activities.Server, nics []manifest.NIC) error {
	for _, nic := range nics {
		if err := a.registry.Disown(ctx, macFolder, macOwner(server, nic), candidates(server, nic)...); err != nil {
			return err
		}
	}
	return nil
}

func macOwner(server activities.Server, nic manifest.NIC) string { return server.UID + "/" + nic.Name }

// candidates lists the MACs a NIC may have, in the order in which they are tried.
func candidates(server activities.Server, nic manifest.NIC) []string {
	if nic.MAC != "" {
		return []string{nic.MAC}
	}
	out := []string{manifest.MAC(server.UID, nic.Name)}
	for try := 1; try < macTries; try++ {
		out = append(out, manifest.MAC(server.UID, fmt.Sprintf("%s/%d", nic.Name, try)))
	}
	return out
}
