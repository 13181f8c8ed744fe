package libvirtx

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"libvirt.org/go/libvirt"

	"burrow.dev/burrow/internal/errs"
)

func TestErrorsOfLibvirtAreClassedOnce(t *testing.T) {
	const any = ""
	for name, c := range map[string]struct {
		code  libvirt.ErrorNumber
		text  string
		class errs.Class
		is    error
		next  string
	}{
		"no domain":      {libvirt.ERR_NO_DOMAIN, "Domain not found", errs.Transient, errs.ErrNotFound, any},
		"no volume":      {libvirt.ERR_NO_STORAGE_VOL, "Storage volume not found", errs.Transient, errs.ErrNotFound, any},
		"no pool":        {libvirt.ERR_NO_STORAGE_POOL, "Storage pool not found", errs.Operator, errs.ErrNotFound, "pool-define"},
		"connection":     {libvirt.ERR_RPC, "client socket is closed", errs.Transient, nil, any},
		"libvirtd down":  {libvirt.ERR_NO_CONNECT, "Failed to connect socket", errs.Transient, errs.ErrUnavailable, "libvirtd"},
		"system":         {libvirt.ERR_SYSTEM_ERROR, "Input/output error", errs.Transient, nil, any},
		"internal":       {libvirt.ERR_INTERNAL_ERROR, "unexpected exit status", errs.Transient, nil, any},
		"timeout":        {libvirt.ERR_OPERATION_TIMEOUT, "Timed out during operation: cannot acquire state change lock", errs.Transient, errs.ErrBusy, any},
		"state lock":     {libvirt.ERR_OPERATION_FAILED, "cannot acquire state change lock (held by monitor=remoteDispatch)", errs.Transient, errs.ErrBusy, any},
		"async jobs":     {libvirt.ERR_INTERNAL_ERROR, "pool 'burrow' has asynchronous jobs running.", errs.Transient, errs.ErrBusy, any},
		"no space":       {libvirt.ERR_SYSTEM_ERROR, "cannot fill file: No space left on device", errs.Operator, errs.ErrNoSpace, "burrow retry"},
		"quota":          {libvirt.ERR_SYSTEM_ERROR, "write: Disk quota exceeded", errs.Operator, errs.ErrNoSpace, any},
		"no memory":      {libvirt.ERR_INTERNAL_ERROR, "cannot set up guest memory 'pc.ram': Cannot allocate memory", errs.Operator, nil, "memory"},
		"permission":     {libvirt.ERR_SYSTEM_ERROR, "Could not open '/x': Permission denied", errs.Operator, nil, "chmod o+x"},
		"write lock":     {libvirt.ERR_INTERNAL_ERROR, `Failed to get "write" lock`, errs.Transient, errs.ErrBusy, "fuser"},
		"name taken":     {libvirt.ERR_OPERATION_FAILED, "domain 'db' already exists with uuid 1", errs.Permanent, errs.ErrExists, any},
		"volume taken":   {libvirt.ERR_STORAGE_VOL_EXIST, "storage volume exists", errs.Permanent, errs.ErrExists, any},
		"pool conflict":  {libvirt.ERR_OPERATION_FAILED, "Storage source conflict with pool: 'x'", errs.Permanent, errs.ErrConflict, "undefine"},
		"bad xml":        {libvirt.ERR_XML_ERROR, "missing name", errs.Permanent, errs.ErrInvalid, "doctor"},
		"no kvm":         {libvirt.ERR_INVALID_ARG, "could not find capabilities for domaintype=kvm", errs.Permanent, errs.ErrInvalid, "doctor"},
		"not root":       {libvirt.ERR_AUTH_UNAVAILABLE, "authentication unavailable", errs.Operator, nil, "root"},
		"something else": {libvirt.ERR_OPERATION_FAILED, "who knows", errs.Transient, nil, any},
	} {
		t.Run(name, func(t *testing.T) {
			err := translate(call{object: "domain db", action: "start"}, libvirt.Error{Code: c.code, Message: c.text})
			require.Equal(t, c.class, errs.ClassOf(err))
			require.ErrorContains(t, err, "domain db: start: ")
			require.ErrorContains(t, err, c.text)
			require.ErrorContains(t, err, c.next)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			for _, other := range []error{errs.ErrNotFound, errs.ErrExists, errs.ErrNoSpace, errs.ErrBusy} {
				require.True(t, c.is == other || !errors.Is(err, other), "not %v", other)
			}
		})
	}
	require.NoError(t, translate(call{}, nil))
	own := errs.NewPermanent("pool p", "make", errs.ErrNotManaged, "")
	require.Equal(t, own, translate(call{object: "x"}, own), "an error of ours stays as it is")
	require.ErrorIs(t, translate(call{}, context.Canceled), context.Canceled)
}

func TestEveryObjectIsFreed(t *testing.T) {
	c := New("", nil)
	for range 50 {
		_, err := c.DomainUUID(t.Context(), "nobody")
		require.ErrorIs(t, err, errs.ErrNotFound)
		_, err = c.Volume(t.Context(), "nowhere", "nothing")
		require.ErrorIs(t, err, errs.ErrNotFound)
		_, err = c.Host(t.Context())
		require.NoError(t, err)
	}
	c.calls.Wait()
	s := c.session
	c.session = nil
	require.NoError(t, s.conn.UnregisterCloseCallback())
	left, err := s.conn.Close()
	require.NoError(t, err)
	require.Zero(t, left, "references to the connection that nobody gave back")
}
