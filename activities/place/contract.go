package place

// In asks for a host with room.
type In struct {
	Owner    string         `json:"owner"` // "server/db", for messages
	UID      string         `json:"uid"`   // owner of the reservation
	CPU      int            `json:"cpu"`
	Memory   int            `json:"memory"`  // MiB
	DiskGiB  map[string]int `json:"diskGiB"` // by pool; "" is the host's default pool
	NodeName string         `json:"nodeName,omitempty"`
	// OnHost restricts to the host where attached volumes are; empty: any.
	OnHost   string            `json:"onHost,omitempty"`
	Selector map[string]string `json:"selector,omitempty"`
}

// Out is the host chosen. The same UID gets the same host again.
// No host alive → transient. None big enough → Operator, naming what is short where.
type Out struct {
	Host string `json:"host"`
}

// ResizeIn makes a reservation another size, on the host where it is. No room for it →
// Operator, and it stays as it was. None at all → Permanent.
type ResizeIn struct {
	Owner   string         `json:"owner"`
	UID     string         `json:"uid"`
	CPU     int            `json:"cpu"`
	Memory  int            `json:"memory"` // MiB
	DiskGiB map[string]int `json:"diskGiB"`
}

// ReleaseIn drops a reservation; none is success.
type ReleaseIn struct {
	UID string `json:"uid"`
}
