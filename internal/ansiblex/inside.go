package ansiblex

import (
	"encoding/json"
	"maps"
)

// LocalInventory is our inventory for a run inside the server itself: its name and groups, as
// in a run from outside, and no connection.
func LocalInventory(h Host) ([]byte, error) {
	type group struct {
		Hosts map[string]map[string]any `json:"hosts"`
	}
	vars := map[string]any{"ansible_connection": "local"}
	maps.Copy(vars, h.facts())
	groups := map[string]group{groupOfAll: {Hosts: map[string]map[string]any{h.Name: vars}}}
	for _, name := range h.groups() {
		groups[name] = group{Hosts: map[string]map[string]any{h.Name: {}}}
	}
	return json.MarshalIndent(map[string]any{"all": map[string]any{"children": groups}}, "", "  ")
}

// Inside follows a run that goes on elsewhere, from the output and the events that it
// leaves there. Whatever these are, they are cleaned, counted and bounded as those of a run here.
type Inside struct {
	folder *Folder
	sinks  Sinks
	out    *stream
	watch  *watch
}

// Follow begins to follow a run, whose log and events go into the folder. End it with Outcome.
func (f *Folder) Follow(sinks Sinks) (*Inside, error) {
	i := &Inside{folder: f, sinks: sinks, out: newStream(sinks.Log)}
	return i, i.Again()
}

// Again begins a further try: what failed in the one before does not count.
func (i *Inside) Again() error {
	if i.watch != nil {
		i.watch.closeEvents()
	}
	i.watch = &watch{log: i.sinks.Log, sinks: i.sinks, tally: newTally(), stop: func() {}}
	return i.watch.openEvents(i.folder)
}

// Output takes what the run prints, in any pieces.
func (i *Inside) Output(p []byte) { _, _ = i.out.Write(p) }

// Events takes events of the try, in any pieces.
func (i *Inside) Events(p []byte) { _, _ = i.watch.eventsW.Write(p) } // its reader reads to the end

// Outcome ends following, and decides what the run was that ended with an exit status of
// ansible-playbook's.
func (i *Inside) Outcome(exit int) Outcome {
	i.watch.closeEvents()
	i.out.flush()
	if prompt := i.watch.tally.prompt; prompt != "" {
		return Outcome{Result: Prompted, Message: prompt, Recap: i.watch.tally.recap}
	}
	return i.watch.judge(i.folder, exit, false, false, i.out.last.text)
}

// Close ends following a run that has no outcome. What it printed last is in the log.
func (i *Inside) Close() {
	i.watch.closeEvents()
	i.out.flush()
}
