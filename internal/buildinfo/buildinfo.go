// Package buildinfo knows which build this program is.
package buildinfo

import "runtime/debug"

// version is set by the build: -ldflags "-X burrow.dev/burrow/internal/buildinfo.version=v1.2.3".
var version string

// Version gives the version the build was given, else the module's, else "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}
