package gateway

import (
	"context"
	"time"

	"burrow.dev/burrow/internal/gateway/gatewaypb"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

// SetSecret stores a secret and reports whether it is new.
func (c *Client) SetSecret(ctx context.Context, name string, value []byte, by string) (created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := gatewaypb.NewSecretsClient(c.conn).SetSecret(ctx, &gatewaypb.SetSecretRequest{Name: name, Value: value, By: by})
	if err != nil {
		return false, c.failed(err, "set a secret")
	}
	return resp.GetCreated(), nil
}

// ListSecrets gives what is known of the secrets that people set, by name.
func (c *Client) ListSecrets(ctx context.Context) ([]manifest.Secret, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stream, err := gatewaypb.NewSecretsClient(c.conn).ListSecrets(ctx, &gatewaypb.ListSecretsRequest{})
	if err != nil {
		return nil, c.failed(err, "list secrets")
	}
	var all []manifest.Secret
	err = receive(stream, c.failing("list secrets"), func(one *gatewaypb.SecretInfo) error {
		all = append(all, manifest.Secret{
			Name: one.GetName(), SetAt: fromUnixMs(one.GetSetAtUnixMs()), SetBy: one.GetSetBy(),
			MasterKey: one.GetKeyId(), Current: one.GetCurrent(),
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// RemoveSecret deletes a secret; errs.ErrNotFound when there is none. One that a record
// refers to is refused, and the error names the record.
func (c *Client) RemoveSecret(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := gatewaypb.NewSecretsClient(c.conn).RemoveSecret(ctx, &gatewaypb.RemoveSecretRequest{Name: name})
	return c.failed(err, "remove a secret")
}

// RotateKey changes the master key and calls say for each step. It may take as long as
// there are secrets; ending ctx interrupts it, and the next one goes on from there.
func (c *Client) RotateKey(ctx context.Context, r keyring.Rotation, say func(keyring.Step)) error {
	stream, err := gatewaypb.NewSecretsClient(c.conn).RotateKey(ctx, &gatewaypb.RotateKeyRequest{By: r.By, Without: r.Without})
	if err != nil {
		return c.failed(err, "rotate the master key")
	}
	return receive(stream, c.failingUnless(ctx, "rotate the master key"), func(step *gatewaypb.RotateKeyEvent) error {
		say(keyring.Step{
			Phase: keyring.Phase(step.GetPhase()), KeyID: step.GetKeyId(), Place: step.GetPlace(),
			Hosts: step.GetHosts(), Done: int(step.GetDone()),
		})
		return nil
	})
}

// unixMs is a time on the wire; 0 is none.
func unixMs(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromUnixMs(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
