package named

import (
	"slices"
	"testing"
)

type word string

func (w word) Key() string { return string(w[:1]) }

func TestRowsAreFoundByTheirNames(t *testing.T) {
	words := Table[word]{"beta", "alpha", "gamma"}
	for _, w := range words {
		if got, ok := words.Lookup(w.Key()); !ok || got != w {
			t.Errorf("%s is found as %q, %v", w.Key(), got, ok)
		}
	}
	if got, ok := words.Lookup("beta"); ok || got != "" {
		t.Errorf("an unknown name is found as %q", got)
	}
	if got := words.Names(); !slices.Equal(got, []string{"b", "a", "g"}) {
		t.Errorf("names %v are not in the order of the table", got)
	}
	if got := words.NamesOf(func(w word) bool { return len(w) == 5 }); !slices.Equal(got, []string{"a", "g"}) {
		t.Errorf("names of the rows with five letters are %v", got)
	}
}
