package manifest

// Known is what exists already, as far as whoever validates can tell.
type Known interface {
	// Lookup gives a record; ok is false when there is none.
	Lookup(kind Kind, name string) (record Record, ok bool)
	// Each gives all records of a kind.
	Each(kind Kind) []Record
	// Catalogue reports whether an image of that name ships with burrow.
	Catalogue(image string) bool
	// CatalogueNames gives the names of those images, for suggestions.
	CatalogueNames() []string
	// Connected is false when no gateway was asked, so that a message can say so.
	Connected() bool
}

// Snapshot is a Known from records read once.
type Snapshot struct {
	records   map[Kind]map[string]Record
	catalogue map[string]struct{}
	connected bool
}

// NewSnapshot makes a Known of records and the names of the catalogue. connected says
// whether the records are what a gateway answered, or there was none to ask.
func NewSnapshot(records []Record, catalogue []string, connected bool) *Snapshot {
	s := &Snapshot{records: map[Kind]map[string]Record{}, catalogue: map[string]struct{}{}, connected: connected}
	for _, r := range records {
		if s.records[r.Kind] == nil {
			s.records[r.Kind] = map[string]Record{}
		}
		s.records[r.Kind][r.Metadata.Name] = r
	}
	for _, name := range catalogue {
		s.catalogue[name] = struct{}{}
	}
	return s
}

// Lookup implements Known.
func (s *Snapshot) Lookup(kind Kind, name string) (Record, bool) {
	r, ok := s.records[kind][name]
	return r, ok
}

// Each implements Known; the order is that of names.
func (s *Snapshot) Each(kind Kind) []Record {
	records := make([]Record, 0, len(s.records[kind]))
	for _, name := range sortedKeys(s.records[kind]) {
		records = append(records, s.records[kind][name])
	}
	return records
}

// Catalogue implements Known.
func (s *Snapshot) Catalogue(image string) bool {
	_, ok := s.catalogue[image]
	return ok
}

// CatalogueNames implements Known; the order is that of names.
func (s *Snapshot) CatalogueNames() []string { return sortedKeys(s.catalogue) }

// Connected implements Known.
func (s *Snapshot) Connected() bool { return s.connected }
