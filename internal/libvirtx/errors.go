package libvirtx

import (
	"errors"
	"fmt"
	"strings"

	"libvirt.org/go/libvirt"

	"burrow.dev/burrow/internal/errs"
)

// translate turns libvirt's error into the project's: class, sentinel, object, action
// and next step. It is the one place where a libvirt error is judged.
func translate(cl call, err error) error {
	if err == nil {
		return nil
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return err
	}
	var lv libvirt.Error
	if !errors.As(err, &lv) {
		return errs.NewTransient(cl.object, cl.action, err)
	}
	cause := errors.New(lv.Message)
	if v, ok := judgeText(lv.Message); ok {
		return v.make(cl, cause)
	}
	return judgeCode(lv.Code).make(cl, cause)
}

// verdict is what an error means to an operation.
type verdict struct {
	class    errs.Class
	sentinel error
	next     string
}

func (v verdict) make(cl call, cause error) error {
	if v.sentinel != nil {
		cause = fmt.Errorf("%w: %w", v.sentinel, cause)
	}
	return errs.New(v.class, cl.object, cl.action, cause, v.next)
}

// judgeText knows causes that libvirt reports under its general codes. The texts are
// those of libvirt, QEMU and the C library in the C locale, which daemons run with.
func judgeText(message string) (verdict, bool) {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(strings.ToLower(message), p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("no space left on device", "disk quota exceeded"):
		return verdict{errs.Operator, errs.ErrNoSpace, "free space in the pool's folder, then: burrow retry"}, true
	case has("no more available pci slots"):
		return verdict{errs.Operator, errs.ErrNoSpace, "restart the server, which gives it free slots, then: burrow retry"}, true
	case has("cannot allocate memory"):
		return verdict{errs.Operator, nil, "free memory on the host or ask for less, then: burrow retry"}, true
	case has(`failed to get "write" lock`, `failed to get shared "write" lock`, "is another process using the image"):
		return verdict{errs.Transient, errs.ErrBusy, "another process has the image open: fuser -v shows which"}, true
	case has("asynchronous jobs running", "being allocated", "still in use", "cannot acquire state change lock",
		"active console session exists", "device or resource busy", "another process is using"):
		return verdict{errs.Transient, errs.ErrBusy, ""}, true
	case has("permission denied", "apparmor", "selinux"):
		return verdict{errs.Operator, nil, "QEMU's user must reach the file: chmod o+x on the folders above it, and look for DENIED in dmesg; then: burrow retry"}, true
	case has("storage source conflict"):
		return verdict{errs.Permanent, errs.ErrConflict, "another pool stands on that folder: name it in the worker's configuration, or undefine it"}, true
	case has("already exists"):
		return verdict{errs.Permanent, errs.ErrExists, ""}, true
	}
	return verdict{}, false
}

func judgeCode(code libvirt.ErrorNumber) verdict {
	switch code {
	case libvirt.ERR_NO_DOMAIN, libvirt.ERR_NO_STORAGE_VOL, libvirt.ERR_NO_DOMAIN_METADATA:
		return verdict{errs.Transient, errs.ErrNotFound, ""}
	case libvirt.ERR_NO_STORAGE_POOL:
		return verdict{errs.Operator, errs.ErrNotFound, "make the pool (virsh pool-define-as) or restart the worker, which makes its own"}
	case libvirt.ERR_DOM_EXIST, libvirt.ERR_STORAGE_VOL_EXIST:
		return verdict{errs.Permanent, errs.ErrExists, ""}
	case libvirt.ERR_XML_ERROR, libvirt.ERR_XML_DETAIL, libvirt.ERR_XML_INVALID_SCHEMA, libvirt.ERR_CONFIG_UNSUPPORTED,
		libvirt.ERR_INVALID_ARG, libvirt.ERR_NO_SUPPORT, libvirt.ERR_ARGUMENT_UNSUPPORTED,
		libvirt.ERR_OPERATION_UNSUPPORTED, libvirt.ERR_OVERFLOW, libvirt.ERR_CPU_INCOMPATIBLE:
		return verdict{errs.Permanent, errs.ErrInvalid, "this host's libvirt or QEMU cannot do it: burrow doctor"}
	case libvirt.ERR_AUTH_FAILED, libvirt.ERR_AUTH_CANCELLED, libvirt.ERR_AUTH_UNAVAILABLE, libvirt.ERR_ACCESS_DENIED,
		libvirt.ERR_OPERATION_DENIED:
		return verdict{errs.Operator, nil, "the worker must run as root, or as a member of group libvirt"}
	case libvirt.ERR_NO_CONNECT:
		return verdict{errs.Transient, errs.ErrUnavailable, "is libvirtd running? systemctl status libvirtd"}
	case libvirt.ERR_RESOURCE_BUSY, libvirt.ERR_OPERATION_TIMEOUT:
		return verdict{errs.Transient, errs.ErrBusy, ""}
	}
	return verdict{class: errs.Transient}
}

// isBroken tells that the connection itself is no good any more.
func isBroken(err error) bool {
	return errors.Is(err, libvirt.ERR_RPC) || errors.Is(err, libvirt.ERR_INVALID_CONN) ||
		errors.Is(err, libvirt.ERR_NO_CONNECT)
}

// isCode reports whether err is libvirt's error of that number.
func isCode(err error, code libvirt.ErrorNumber) bool { return errors.Is(err, code) }
