package addrspace

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"go4.org/netipx"

	"burrow.dev/burrow/internal/errs"
)

// GatewayOwner starts the owner of a subnet's gateway: "gateway/<slot>".
const GatewayOwner = "gateway"

// TakenError says that an address asked for has another owner. It is errs.ErrExists.
type TakenError struct {
	Addr netip.Addr
	// Owner has it: "<server uid>/<nic>/<slot>".
	Owner string
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("address %s has an owner already: %s", e.Addr, e.Owner)
}

// Is makes errors.Is(err, errs.ErrExists) true.
func (e *TakenError) Is(target error) bool { return target == errs.ErrExists }

// RefusedError says that an address asked for is never handed out. It is errs.ErrInvalid.
type RefusedError struct {
	Addr netip.Addr
	Why  string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("address %s cannot be used: %s", e.Addr, e.Why)
}

// Is makes errors.Is(err, errs.ErrInvalid) true.
func (e *RefusedError) Is(target error) bool { return target == errs.ErrInvalid }

// ReservedError says that addresses that were to be reserved are, by somebody or in another
// range. It is errs.ErrExists.
type ReservedError struct {
	Asked    netipx.IPRange
	Reserved Reserved
}

func (e *ReservedError) Error() string {
	return fmt.Sprintf("addresses %s: %s are reserved by %s since %s", e.Asked, e.Reserved.Range(), e.Reserved.By, e.Reserved.Since.Format(time.RFC3339))
}

// Is makes errors.Is(err, errs.ErrExists) true.
func (e *ReservedError) Is(target error) bool { return target == errs.ErrExists }

// HolderError says that an owner has an address already, and asked for another one. It is
// errs.ErrConflict: release the old one first.
type HolderError struct {
	Owner      string
	Has, Wants netip.Addr
}

func (e *HolderError) Error() string {
	return fmt.Sprintf("owner %s has address %s and asks for %s", e.Owner, e.Has, e.Wants)
}

// Is makes errors.Is(err, errs.ErrConflict) true.
func (e *HolderError) Is(target error) bool { return target == errs.ErrConflict }

// QuarantineError says that what is free was released a moment ago: waiting helps. It is
// errs.ErrUnavailable. Addr is the one asked for, or invalid for "all that are free".
type QuarantineError struct{ Addr netip.Addr }

func (e *QuarantineError) Error() string {
	if e.Addr.IsValid() {
		return fmt.Sprintf("address %s was released a moment ago and is in quarantine", e.Addr)
	}
	return "all free addresses were released a moment ago and are in quarantine"
}

// Is makes errors.Is(err, errs.ErrUnavailable) true.
func (e *QuarantineError) Is(target error) bool { return target == errs.ErrUnavailable }

// User is who has addresses on a network, and how many.
type User struct {
	// UID of a server, or GatewayOwner.
	UID   string
	Count int
}

// ExhaustedError says that a subnet has no address left. It is errs.ErrNoSpace.
type ExhaustedError struct {
	Subnet netip.Prefix
	// Size is the number of addresses it can hand out, in words.
	Size string
	// Users are the biggest ones, biggest first.
	Users []User
}

func (e *ExhaustedError) Error() string {
	if e.Size == "0" {
		return fmt.Sprintf("subnet %s has no address to hand out: all are reserved", e.Subnet)
	}
	return fmt.Sprintf("subnet %s has no address left: all %s are in use", e.Subnet, e.Size)
}

// Is makes errors.Is(err, errs.ErrNoSpace) true.
func (e *ExhaustedError) Is(target error) bool { return target == errs.ErrNoSpace }

// InUseError says who uses a network that was to be forgotten. It is errs.ErrBusy.
type InUseError struct{ Users []User }

func (e *InUseError) Error() string {
	uids := make([]string, len(e.Users))
	for i, u := range e.Users {
		uids[i] = u.UID
	}
	return "network is in use by " + strings.Join(uids, ", ")
}

// Is makes errors.Is(err, errs.ErrBusy) true.
func (e *InUseError) Is(target error) bool { return target == errs.ErrBusy }
