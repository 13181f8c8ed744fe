package lost

import (
	"encoding/json"
	"time"
)

// Signal tells an operation that a host was declared lost; its argument is a HostLost.
const Signal = "host-lost"

// HostLost is what the signal carries.
type HostLost struct {
	Host string `json:"host"`
}

// DeclareIn marks a host lost. Its worker lives → Permanent ErrBusy; no such host →
// Permanent ErrNotFound; marked already → the mark that is there.
type DeclareIn struct {
	Host string    `json:"host"`
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
}

// DeclareOut is the mark.
type DeclareOut struct {
	Since time.Time `json:"since"`
}

// TellIn tells every open operation on a host, and the records of the servers there, that
// the host is lost. Again is harmless.
type TellIn struct {
	Host string `json:"host"`
}

// TellOut names the servers there, and the resources whose operation was told, sorted.
type TellOut struct {
	Servers []string `json:"servers,omitempty"`
	Told    []string `json:"told,omitempty"`
}

// AskIn asks whether a host still is lost.
type AskIn struct {
	Host string `json:"host"`
}

// AskOut is the answer.
type AskOut struct {
	Lost bool `json:"lost"`
}

// OweIn writes down what a lost host is to do when it is back: the call of an activity.
type OweIn struct {
	Host string `json:"host"`
	// Object is the resource whose operation owes it: "server/db".
	Object   string          `json:"object"`
	What     string          `json:"what"`
	Activity string          `json:"activity"`
	Input    json.RawMessage `json:"input"`
}

// OweOut says whether it was written down. Otherwise the host is back, and does it itself.
type OweOut struct {
	Owed bool `json:"owed"`
}
