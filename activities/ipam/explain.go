package ipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"burrow.dev/burrow/internal/addrspace"
	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

func decode(data []byte, into any) error { return json.Unmarshal(data, into) }

// explain gives an address pool's error its class and words that a user understands:
// servers by name instead of uid.
func (a *Activities) explain(ctx context.Context, object, network string, err error) error {
	action := "allocate address on network/" + network
	var taken *addrspace.TakenError
	var full *addrspace.ExhaustedError
	switch {
	case errors.As(err, &taken):
		uid, _, _ := strings.Cut(taken.Owner, "/")
		return errs.NewPermanent(object, action, fmt.Errorf("address %s: %w: %s has it", taken.Addr, errs.ErrExists, a.userName(ctx, uid)),
			"ask for another address, or leave it out to get the next free one")
	case errors.As(err, &full):
		if len(full.Users) > 0 {
			err = fmt.Errorf("%w; most have %s", err, a.userList(ctx, full.Users))
		}
		return errs.NewOperator(object, action, err, "delete servers, unreserve addresses, or give the network a larger or a second subnet")
	case errors.Is(err, errs.ErrInvalid):
		return errs.NewPermanent(object, action, err, "see burrow describe network/"+network)
	case errors.Is(err, errs.ErrNotFound):
		return errs.NewPermanent(object, action, fmt.Errorf("network/%s: %w", network, errs.ErrNotFound), "apply the Network first")
	}
	var holder *addrspace.HolderError
	if errors.As(err, &holder) {
		return errs.NewPermanent(object, action, fmt.Errorf("%w: it has %s and asks for %s", errs.ErrConflict, holder.Has, holder.Wants),
			"delete the server and apply it again to change its address")
	}
	return errs.New(errs.ClassOf(err), object, action, err, "")
}

// userName gives the name of who owns addresses; a server that has no record any more by its uid.
func (a *Activities) userName(ctx context.Context, uid string) string {
	return a.userNames(ctx, []addrspace.User{{UID: uid}})[0]
}

// userNames reads the servers' records once, which may be thousands.
func (a *Activities) userNames(ctx context.Context, users []addrspace.User) []string {
	names := map[string]string{addrspace.GatewayOwner: "the network's gateway"}
	recs, err := a.registry.List(ctx, manifest.KindServer)
	for _, rec := range recs {
		names[rec.Metadata.UID] = manifest.Ref(manifest.KindServer, rec.Metadata.Name)
	}
	out := make([]string, len(users))
	for i, user := range users {
		switch name, ok := names[user.UID]; {
		case ok:
			out[i] = name
		case err != nil:
			out[i] = "a server (uid " + user.UID + ")"
		default:
			out[i] = "a server without a record (uid " + user.UID + ")"
		}
	}
	return out
}

func (a *Activities) userList(ctx context.Context, users []addrspace.User) string {
	out := a.userNames(ctx, users)
	for i, user := range users {
		if user.Count > 0 {
			out[i] = fmt.Sprintf("%s (%d)", out[i], user.Count)
		}
	}
	return strings.Join(out, ", ")
}
