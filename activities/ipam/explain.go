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
		return errs.NewOperator(object, action, fmt.Errorf("%w; most have %s", err, a.userList(ctx, full.Users)),
			"delete servers, or give the network a larger or a second subnet")
	case errors.Is(err, errs.ErrInvalid):
		return errs.NewPermanent(object, action, err, "see burrow describe network/"+network)
	case errors.Is(err, errs.ErrNotFound):
		return errs.NewPermanent(object, action, fmt.Errorf("network/%s: %w", network, errs.ErrNotFound), "apply the Network first")
	}
	var holder *addrspace.HolderError
	if errors.As(err, &holder) {
		return errs.NewPermanent(object, action, err, "delete the server and apply it again to change its address")
	}
	return errs.New(errs.ClassOf(err), object, action, err, "")
}

// userName gives the name of who owns addresses; a server that has no record any more by its uid.
func (a *Activities) userName(ctx context.Context, uid string) string {
	if uid == addrspace.GatewayOwner {
		return "the network's gateway"
	}
	recs, err := a.registry.List(ctx, manifest.KindServer)
	if err == nil {
		for _, rec := range recs {
			if rec.Metadata.UID == uid {
				return manifest.Ref(manifest.KindServer, rec.Metadata.Name)
			}
		}
	}
	return "a server without a record (uid " + uid + ")"
}

func (a *Activities) userList(ctx context.Context, users []addrspace.User) string {
	var out []string
	for _, user := range users {
		name := a.userName(ctx, user.UID)
		if user.Count > 0 {
			name = fmt.Sprintf("%s (%d)", name, user.Count)
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}
