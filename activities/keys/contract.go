package keys

// FetchIn names the sources of login keys.
type FetchIn struct {
	Owner     string   `json:"owner"` // "server/db", for messages
	URLs      []string `json:"urls,omitempty"`
	PublicKey []string `json:"publicKey,omitempty"`
}

// FetchOut holds authorized_keys lines: parsed, normalised, without duplicates, in order.
// 404 or an HTML page → Permanent; 5xx, time-outs, a name that does not resolve → transient;
// nothing at all → Permanent when a URL was given (a server that nobody can log in to is
// not what was asked for).
type FetchOut struct {
	Keys []string `json:"keys"`
}
