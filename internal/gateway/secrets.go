package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/grpc"

	"burrow.dev/burrow/internal/errs"
	"burrow.dev/burrow/internal/gateway/gatewaypb"
	"burrow.dev/burrow/internal/keyring"
	"burrow.dev/burrow/manifest"
)

// usersNamed is how many users of a secret an error names.
const usersNamed = 5

// secrets answers the Secrets service.
type secrets struct {
	gatewaypb.UnimplementedSecretsServer
	deps Deps
	log  *slog.Logger
}

// SetSecret implements the service.
func (s secrets) SetSecret(ctx context.Context, req *gatewaypb.SetSecretRequest) (*gatewaypb.SetSecretResponse, error) {
	if s.deps.Secrets == nil {
		return nil, absent("secrets")
	}
	by := requester(req)
	created, err := s.deps.Secrets.Set(ctx, req.GetName(), req.GetValue(), by)
	if err != nil {
		return nil, err
	}
	s.log.Info("a secret was set", "secret", req.GetName(), "by", by)
	return &gatewaypb.SetSecretResponse{Created: created}, nil
}

// ListSecrets implements the service.
func (s secrets) ListSecrets(_ *gatewaypb.ListSecretsRequest, stream grpc.ServerStreamingServer[gatewaypb.SecretInfo]) error {
	if s.deps.Secrets == nil {
		return absent("secrets")
	}
	all, err := s.deps.Secrets.List(stream.Context())
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := stream.Send(&gatewaypb.SecretInfo{
			Name: one.Name, SetAtUnixMs: unixMs(one.SetAt), SetBy: one.SetBy, KeyId: one.MasterKey, Current: one.Current,
		}); err != nil {
			return err
		}
	}
	return nil
}

// RemoveSecret implements the service. A server that is declared at the same moment may
// still come to name a secret that is gone: its seed then says what to set.
func (s secrets) RemoveSecret(ctx context.Context, req *gatewaypb.RemoveSecretRequest) (*gatewaypb.RemoveSecretResponse, error) {
	if s.deps.Secrets == nil {
		return nil, absent("secrets")
	}
	users, err := s.usersOf(ctx, req.GetName())
	if err != nil {
		return nil, err
	}
	if len(users) > 0 {
		named := users[:min(len(users), usersNamed)]
		more := ""
		if len(users) > len(named) {
			more = errs.Reason(" and %d more", len(users)-len(named)).Error()
		}
		return nil, errs.NewPermanent("secret "+req.GetName(), "remove", errs.Reason("it is used by %s%s", strings.Join(named, ", "), more),
			"delete these first, or give it another value: burrow secret set "+req.GetName())
	}
	if err := s.deps.Secrets.Remove(ctx, req.GetName()); err != nil {
		return nil, err
	}
	s.log.Info("a secret was removed", "secret", req.GetName())
	return &gatewaypb.RemoveSecretResponse{}, nil
}

// usersOf lists the records that refer to a secret.
func (s secrets) usersOf(ctx context.Context, name string) ([]string, error) {
	var users []string
	look := func(rec manifest.Record) error {
		if rec.Status.Phase == manifest.PhaseDamaged {
			users = append(users, manifest.Ref(rec.Kind, rec.Metadata.Name)+" (perhaps: its record cannot be read)")
			return nil
		}
		if slices.Contains(secretsOf(rec), name) {
			users = append(users, manifest.Ref(rec.Kind, rec.Metadata.Name))
		}
		return nil
	}
	for _, kind := range []manifest.Kind{manifest.KindServer, manifest.KindPlaybook} {
		if err := s.deps.Records.Each(ctx, kind, look); err != nil {
			return nil, err
		}
	}
	return users, nil
}

// secretsOf lists what a record names; one that cannot be read names nothing.
func secretsOf(rec manifest.Record) []string {
	if rec.Kind == manifest.KindPlaybook {
		var spec manifest.PlaybookSpec
		_ = json.Unmarshal(rec.Spec, &spec)
		return spec.SecretNames()
	}
	var spec struct {
		Auth    manifest.Auth    `json:"auth"`
		Ansible manifest.Ansible `json:"ansible"`
	}
	_ = json.Unmarshal(rec.Spec, &spec)
	names := spec.Ansible.SecretNames()
	if name, ok := manifest.SecretName(spec.Auth.RootPassword); ok {
		names = append(names, name)
	}
	return names
}

// RotateKey implements the service.
func (s secrets) RotateKey(req *gatewaypb.RotateKeyRequest, stream grpc.ServerStreamingServer[gatewaypb.RotateKeyEvent]) error {
	if s.deps.Secrets == nil {
		return absent("secrets")
	}
	asked := keyring.Rotation{By: requester(req), Host: s.deps.Info.Host, Without: req.GetWithout()}
	return s.deps.Secrets.Rotate(stream.Context(), asked, func(step keyring.Step) {
		if step.Phase != keyring.Encrypts {
			s.log.Info("rotation of the master key", "phase", string(step.Phase), "key", step.KeyID, "by", asked.By)
		}
		// Who asked may have gone; the stream's context then ends the rotation.
		_ = stream.Send(&gatewaypb.RotateKeyEvent{
			Phase: string(step.Phase), KeyId: step.KeyID, Place: step.Place, Hosts: step.Hosts, Done: int64(step.Done),
		})
	})
}
