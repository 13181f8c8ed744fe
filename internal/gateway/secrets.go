package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
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
	err := s.deps.Records.Each(ctx, manifest.KindServer, func(rec manifest.Record) error {
		var spec struct {
			Auth struct {
				RootPassword string `json:"rootPassword"`
			} `json:"auth"`
		}
		if err := json.Unmarshal(rec.Spec, &spec); err != nil {
			return nil // it names nothing that could be read
		}
		if used, ok := manifest.SecretName(spec.Auth.RootPassword); ok && used == name {
			users = append(users, manifest.Ref(rec.Kind, rec.Metadata.Name))
		}
		return nil
	})
	return users, err
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
