// Package gitrepo fetches one commit of a git repository with the git program, as the user
// who runs the command and with their keys and credential helpers.
//
// URL and repository may be anybody's. Only the protocol of the URL is spoken, nothing asks
// on a terminal, how much comes is bounded, and nothing that is fetched is executed: no
// hooks, no submodules, no filters (large-file storage is one).
package gitrepo
