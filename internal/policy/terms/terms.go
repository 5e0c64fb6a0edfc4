// Package terms is the language in which schemes, policies and payloads say what they do not go with. A Term stands
// beside the code of the entry that states it; internal/configs holds every configuration to the terms of all that it
// chooses, and explain and the pages print them. So a new kind of entry that forbids something needs no other code.
package terms

import (
	"slices"
	"strings"
)

// Cond is a condition of a Term: a Fact, a Trait, a Key, or Not of one of these. Its text reads as what is forbidden.
type Cond interface{ String() string }

// Fact is something that holds of a whole run, or does not.
type Fact string

// Trait is something that holds of a scheme with its keys in a rule, or does not.
type Trait string

// Key compares a key of the YAML with a value. A path that begins with a dot is a key of the scheme's rule. Where the
// configuration has no such key, or has a problem with it already, no comparison holds.
type Key struct {
	Path  string
	Op    string // one of == != < > <= >= and IsWritten
	Value string // a word or a number; another key's, where that stands in braces
}

// Is compares a key with a value.
func Is(path, op, value string) Key { return Key{path, op, value} }

// Written holds where the file has a key, whatever its value.
func Written(path string) Key { return Key{Path: path, Op: IsWritten} }

// No holds where a condition is known not to hold.
func No(c Cond) Not { return Not{c} }

// Not holds where the other condition is known not to hold.
type Not struct{ Cond }

func (f Fact) String() string  { return string(f) }
func (t Trait) String() string { return string(t) }
func (n Not) String() string   { return "not " + n.Cond.String() }

func (k Key) String() string {
	path, value := strings.TrimPrefix(k.Path, "."), strings.Trim(k.Value, "{}")
	switch k.Op {
	case "==":
		return "`" + path + ": " + value + "`"
	case "!=":
		return "`" + path + "` other than `" + value + "`"
	case IsWritten:
		return "`" + path + "`"
	}
	return "`" + path + "` " + k.Op + " " + value
}

// IsWritten is the operator of a Key that the file has, whatever its value.
const IsWritten = "is written"

// Ordered says whether two numbers compare so.
func Ordered(op string, a, b float64) bool {
	switch op {
	case "<":
		return a < b
	case ">":
		return a > b
	case "<=":
		return a <= b
	case ">=":
		return a >= b
	}
	panic("terms: no operator " + op + "; there are == != < > <= >=")
}

// Or joins words for a sentence.
func Or(words []string) string {
	n := len(words)
	if n < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
}

// Term is one thing that an entry forbids. All its conditions together break it.
//
// Why and Out have words in braces: {name} the entry that states the term, {scheme} the scheme that breaks it, {rule} its
// rule, {schemes} what that has in turn, {other} another rule, {other.scheme} its scheme, {awaits} the
// match of the first rule that waits for a straggler, {pulling} and {delta} the advice that makes workers pull before
// every iteration, or push deltas, {in KEY} and {other in KEY} the path of a key of the rule or of the other rule, any
// other one the value of that key; {.KEY} is a key of the rule.
type Term struct {
	Of     Cond    // the kind of entries that state it; nil: the entry in whose list it stands, or all of the list's table
	If     []Cond  // what they forbid
	Beside []Trait // of schemes of other rules: one of them breaks the term, too
	// At is the key at which the error stands; with several, separated by |, the first that is written, or else the last.
	// "": the key that chooses the entry. A path that begins with a dot is a key of the scheme's rule.
	At    string
	Why   string
	Out   string // what to do instead
	Warns bool   // the run may start
	Else  bool   // told only where the term before it is kept
	Each  bool   // told of every scheme that breaks it, and not of the first alone, though it stands at a key of the run
}

// AtTurn is the place of the scheme itself, where a rule has several schemes in turn.
const AtTurn = ".schemes[].scheme"

// Conds are Of and If.
func (t *Term) Conds() []Cond {
	if t.Of == nil {
		return t.If
	}
	return append([]Cond{t.Of}, t.If...)
}

// OfScheme says whether a term is about the schemes of rules, and not about the run alone.
func (t *Term) OfScheme() bool {
	return len(t.Beside) > 0 || strings.HasPrefix(t.At, ".") || slices.ContainsFunc(t.Conds(), ofScheme)
}

func ofScheme(c Cond) bool {
	switch c := c.(type) {
	case Trait:
		return true
	case Key:
		return strings.HasPrefix(c.Path, ".")
	case Not:
		return ofScheme(c.Cond)
	}
	return false
}

// Chains cuts a list into chains: a term, and those behind it that are told only where it is kept.
func Chains(list []Term) (chains [][]Term) {
	for i := range list {
		if list[i].Else && len(chains) > 0 {
			last := len(chains) - 1
			chains[last] = append(chains[last], list[i])
			continue
		}
		chains = append(chains, list[i:i+1:i+1])
	}
	return chains
}

// Fill puts the value of each word in braces into a text.
func Fill(text string, value func(word string) string) string {
	var b strings.Builder
	for {
		before, rest, open := strings.Cut(text, "{")
		b.WriteString(before)
		word, after, closed := strings.Cut(rest, "}")
		if !open || !closed {
			return b.String()
		}
		b.WriteString(value(word))
		text = after
	}
}

// T and F say whether a trait or a fact holds, for Held.
func T(what Trait, holds bool) Holds[Trait] { return Holds[Trait]{what, holds} }

// F is T for a fact.
func F(what Fact, holds bool) Holds[Fact] { return Holds[Fact]{what, holds} }

// Held lists the facts, or traits, that hold.
func Held[F Fact | Trait](all ...Holds[F]) (held []F) {
	for _, h := range all {
		if h.Holds {
			held = append(held, h.What)
		}
	}
	return held
}

// Holds is a fact, or a trait, and whether it holds.
type Holds[F Fact | Trait] struct {
	What  F
	Holds bool
}

// Says is what an entry states of itself: what holds where it is chosen, beyond what its other fields imply, its own
// terms, and the papers that a run with it cites. A scheme has traits, everything else has facts.
type Says struct {
	Traits []Trait
	Facts  []Fact
	Terms  []Term
	Papers []Paper
}

// Paper is a paper as BibTeX has it. One that several entries cite stands in internal/plan/references, and has only its Key
// here; a paper that one entry cites may stand beside that entry.
type Paper struct {
	Key     string // such as ho2013ssp: first author, year, a word of the title
	Authors string // as BibTeX wants them; "and others" where the list is cut
	Title   string
	Venue   string // conference, journal or institution; "": ArXiv is where it appeared
	Year    int
	ArXiv   string // number; "": not there, or not known
}

// Cite names papers of internal/plan/references.
func Cite(keys ...string) (papers []Paper) {
	for _, k := range keys {
		papers = append(papers, Paper{Key: k})
	}
	return papers
}

// Needed is the value that one of the terms demands of a key; "": none does.
func Needed(list []Term, path string) string {
	for _, t := range list {
		for _, c := range t.If {
			if k, is := c.(Key); is && k.Path == path && k.Op == "!=" {
				return k.Value
			}
		}
	}
	return ""
}
