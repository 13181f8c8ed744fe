package etcdstate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"burrow.dev/burrow/manifest"
)

// What a status may take of MaxValue, beside a spec of at most manifest.MaxSpecBytes. An
// operation must be able to settle its record whatever it has to say, so what is only for
// people is cut rather than refused; the whole is in Temporal's history and the run's log.
const (
	maxMessage          = 4 << 10
	maxConditionMessage = 1 << 10
	maxRecap            = 50
)

// bounded cuts what a status says to people. What programs read is never cut.
func bounded(rec manifest.Record) manifest.Record {
	s := &rec.Status
	s.Message = shorten(s.Message, maxMessage)
	if s.Lost != nil && len(s.Lost.Message) > maxMessage {
		lost := *s.Lost
		lost.Message = shorten(lost.Message, maxMessage)
		s.Lost = &lost
	}
	if slices.ContainsFunc(s.Conditions, func(c manifest.Condition) bool { return len(c.Message) > maxConditionMessage }) {
		s.Conditions = slices.Clone(s.Conditions)
		for i := range s.Conditions {
			s.Conditions[i].Message = shorten(s.Conditions[i].Message, maxConditionMessage)
		}
	}
	if s.Playbook != nil && len(s.Playbook.Recap) > maxRecap {
		run := *s.Playbook
		run.Recap = worst(run.Recap)
		s.Playbook = &run
	}
	return rec
}

// worst keeps the hosts of a recap where something failed, then others, by name.
func worst(recap map[string]manifest.Recap) map[string]manifest.Recap {
	trouble := func(host string) int { return recap[host].Failed + recap[host].Unreachable }
	hosts := slices.SortedFunc(maps.Keys(recap), func(a, b string) int {
		return cmp.Or(cmp.Compare(trouble(b), trouble(a)), strings.Compare(a, b))
	})
	kept := map[string]manifest.Recap{}
	for _, host := range hosts[:maxRecap] {
		kept[host] = recap[host]
	}
	return kept
}

// shorten keeps a text's beginning (what, and why) and its end (what to do next).
func shorten(text string, limit int) string {
	const gap = " … "
	if len(text) <= limit {
		return text
	}
	head, tail := limit*3/4-len(gap), len(text)-limit/4
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + gap + text[tail:]
}
