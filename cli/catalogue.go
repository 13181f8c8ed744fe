package cli

// catalogueEntry is an image that is downloaded when it is first used.
type catalogueEntry struct{ Name, OSName, OSVersion, User, URL string }

// catalogue gives the images that ship with burrow by name.
func catalogue() []catalogueEntry { return nil }

func catalogueNames() []string {
	var names []string
	for _, e := range catalogue() {
		names = append(names, e.Name)
	}
	return names
}
