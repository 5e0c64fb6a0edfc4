package terms

import (
	"slices"
	"testing"
)

func TestFill(t *testing.T) {
	got := Fill("{name} is {a.b}, not {in .c}{", func(word string) string { return "<" + word + ">" })
	if want := "<name> is <a.b>, not <in .c>"; got != want {
		t.Errorf("got %q", got)
	}
}

// TestChains: a chain ends where the next term is told for itself.
func TestChains(t *testing.T) {
	var lengths []int
	for _, c := range Chains([]Term{{}, {Else: true}, {}, {Else: true}, {Else: true}, {}}) {
		lengths = append(lengths, len(c))
	}
	if !slices.Equal(lengths, []int{2, 3, 1}) {
		t.Errorf("chains of %v terms", lengths)
	}
}

// TestOfScheme: a term is about schemes if one of its conditions is, or its place.
func TestOfScheme(t *testing.T) {
	for _, c := range []struct {
		term Term
		want bool
	}{
		{Term{If: []Cond{Deals, Is("a.b", ">", "1")}}, false},
		{Term{If: []Cond{Deals, Copies}}, true},
		{Term{Of: Deals, If: []Cond{No(Is(".required", "==", "1"))}}, true},
		{Term{If: []Cond{Deals}, At: ".scheme"}, true},
		{Term{Beside: []Trait{Waits}}, true},
	} {
		if got := c.term.OfScheme(); got != c.want {
			t.Errorf("%+v: %v", c.term, got)
		}
	}
}

func TestNeeded(t *testing.T) {
	list := []Term{{If: []Cond{Is("work.policy", "==", "dbs")}}, {If: []Cond{Is("work.policy", "!=", "coded")}}}
	if got := Needed(list, "work.policy") + Needed(list, "sync"); got != "coded" {
		t.Errorf("needs %q", got)
	}
}

func TestForbiddenInWords(t *testing.T) {
	for want, term := range map[string]Term{
		"any run":                               {},
		"without `update: add`, with `a.b` > 0": {If: []Cond{No(AddsUpdates), Is("a.b", ">", "0")}},
		"pushes of deltas, without a weight that is written, with in another rule: iterations that slow workers skip": {
			If: []Cond{Deltas, No(Weighted)}, Beside: []Trait{Skips}},
	} {
		if got := term.Forbidden(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, term := range map[string]Term{
		"baseline: cuts them; set none":          {At: "baseline", Why: "cuts them", Out: "set none"},
		"x and y; set its rule's push: gradient": {At: ".push", Why: "{name} and {scheme}", Out: "set {rule}.push: gradient"},
	} {
		if got := term.Reason("x", "y"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
