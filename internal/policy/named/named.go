// Package named has tables of things that a configuration calls by name: schemes, send orders, policies, payloads, kinds of stragglers.
// Keys, explain, completion and pages are made from such a table.
package named

import "slices"

// Entry is a row of a table.
type Entry interface {
	// Key is the row's name in the YAML. No other row of its table has it.
	Key() string
}

// Table has the rows in the order of the pages; where there is a default, it is the first.
type Table[E Entry] []E

// Lookup finds the row of a name; ok is false if there is none.
func (t Table[E]) Lookup(name string) (row E, ok bool) {
	i := slices.IndexFunc(t, func(e E) bool { return e.Key() == name })
	if i < 0 {
		return row, false
	}
	return t[i], true
}

// Names lists the names of the rows.
func (t Table[E]) Names() []string { return t.NamesOf(func(E) bool { return true }) }

// NamesOf lists the names of the rows of which something holds.
func (t Table[E]) NamesOf(holds func(E) bool) (names []string) {
	for _, e := range t {
		if holds(e) {
			names = append(names, e.Key())
		}
	}
	return names
}
