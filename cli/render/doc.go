// Package render draws what the command line shows: the steps of operations while
// they run, and tables. Three writers stand behind one interface.
//
//	[]Operation ──Update──▶ Renderer ─┬─ tty    a live region, redrawn in place
//	                                  ├─ plain  one line per change (pipes, CI)
//	                                  └─ json   one object per change (scripts)
//
// Text that came from a guest, a playbook or another machine may hold escape
// sequences that rewrite the screen or the title; everything here passes Clean.
package render
