// Package keys fetches the login keys that a server's manifest names.
//
//	auth.url ──▶ GET (https, public address, ≤ 256 KiB, ≤ 5 redirects) ──▶ parse each line ──▶ authorized_keys lines
//	auth.publicKey ────────────────────────────────────────────────────────────┘
//
// What a URL returns is somebody else's text: a line counts only when it parses as a
// key, and only what was parsed is written out again.
package keys
