package etcdstate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/manifest"
)

// userFolder holds the secrets that people set, apart from burrow's own. Their names have
// no slash, so no name of a person's reaches out of it.
const userFolder = "user/"

// setByMost bounds who is said to have set a secret.
const setByMost = 128

// UserSecrets are those that people set: `burrow secret set`.
type UserSecrets struct{ secrets *Secrets }

// Users gives the secrets that people set.
func (s *Secrets) Users() UserSecrets { return UserSecrets{s} }

// Set writes a secret and reports whether it is new. Refused, as errs.ErrInvalid: a bad
// name, an empty value, one above manifest.MaxSecretBytes.
func (u UserSecrets) Set(ctx context.Context, name string, value []byte, by string) (created bool, err error) {
	full, err := userSecret(name)
	if err != nil {
		return false, err
	}
	switch {
	case len(value) == 0:
		return false, errs.NewPermanent("secret "+name, "set", fmt.Errorf("%w: it is empty", errs.ErrInvalid), "burrow secret rm "+name+" removes it")
	case len(value) > manifest.MaxSecretBytes:
		return false, errs.NewPermanent("secret "+name, "set", fmt.Errorf("%w: it is longer than %d bytes", errs.ErrInvalid, manifest.MaxSecretBytes),
			"keep what is larger elsewhere, and here the key to it")
	}
	resp, err := u.secrets.put(ctx, full, value, &note{At: time.Now().UTC().Truncate(time.Second), By: by[:min(len(by), setByMost)]}, nil)
	if err != nil {
		return false, named(name, err)
	}
	return resp.Responses[0].GetResponsePut().PrevKv == nil, nil
}

// Get gives a secret in clear, for the moment of its use. Absent: errs.ErrNotFound, permanent.
func (u UserSecrets) Get(ctx context.Context, name string) ([]byte, error) {
	full, err := userSecret(name)
	if err != nil {
		return nil, err
	}
	value, err := u.secrets.Get(ctx, full)
	if errors.Is(err, errs.ErrNotFound) {
		return nil, errs.NewPermanent("secret "+name, "read", errs.ErrNotFound, "set it: burrow secret set "+name)
	}
	return value, named(name, err)
}

// List gives the secrets that people set, by name. It decrypts nothing.
func (u UserSecrets) List(ctx context.Context) ([]manifest.Secret, error) {
	s := u.secrets
	state, err := s.readState(ctx)
	if err != nil {
		return nil, err
	}
	prefix := s.store.Key("secrets", userFolder)
	var out []manifest.Secret
	_, err = s.store.EachPage(ctx, prefix, func(kv *mvccpb.KeyValue) error {
		info := manifest.Secret{Name: strings.TrimPrefix(string(kv.Key), prefix)}
		if box, err := unpack(info.Name, kv); err == nil { // a damaged one is listed, to be set again
			info.MasterKey, info.Current = box.KeyID, box.KeyID == state.Current
			if box.Note != nil {
				info.SetAt, info.SetBy = box.Note.At, box.Note.By
			}
		}
		out = append(out, info)
		return nil
	})
	return out, Translate(ctx, "secrets", "list", err)
}

// Remove deletes a secret. Absent: errs.ErrNotFound. That a server may refer to it is for
// the caller to look at.
func (u UserSecrets) Remove(ctx context.Context, name string) error {
	full, err := userSecret(name)
	if err != nil {
		return err
	}
	key, err := u.secrets.key(full)
	if err != nil {
		return err
	}
	resp, err := u.secrets.store.client.Delete(ctx, key)
	if err != nil {
		return Translate(ctx, "secret "+name, "remove", err)
	}
	if resp.Deleted == 0 {
		return errs.NewPermanent("secret "+name, "remove", errs.ErrNotFound, "`burrow secret list` shows what there is")
	}
	return nil
}

// userSecret is the full name of a person's secret.
func userSecret(name string) (string, error) {
	if err := manifest.CheckSecretName(name); err != nil {
		return "", errs.NewPermanent("secret", "name", fmt.Errorf("%w: %w", errs.ErrInvalid, err), "`burrow secret list` shows what there is")
	}
	return userFolder + name, nil
}

// named gives an error about a person's secret the name that people know.
func named(name string, err error) error {
	var own *errs.Error
	if !errors.As(err, &own) || own.Object != "secret "+userFolder+name {
		return err
	}
	return errs.New(own.Class, "secret "+name, own.Action, own.Err, own.Next)
}
