package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
	"fluentps/internal/policy/terms"
	"fluentps/ps/scheme"
)

// holder holds a configuration to the terms of the schemes and policies that it chooses. Each part of what it reads may be
// unknown, because a key has a problem already; no error may follow from the value of such a key.
type holder struct {
	*checks
	t     *keys.Table
	facts map[terms.Fact]bool // of the run, as far as they are known
	rules []ruled
	takes map[int]bool // rules that take statistics of the model; nil: unknown
}

// ruled is a rule without a problem; it has no phases where it has one.
type ruled struct {
	phases []settings.Phase
	traits [][]terms.Trait // of each phase
	at     *keys.Leaf      // the key that names its schemes
}

// stated is a term with who states it, and where it is broken.
type stated struct {
	*terms.Term
	name  string // of the entry
	key   string // that chooses the entry; "": the scheme of rule i
	i, k  int    // the k-th scheme of rule i, where the term is of schemes
	other place  // beside which it must not stand
}

// place is the k-th scheme of a rule.
type place struct{ rule, k int }

// holds says whether a condition holds of the k-th scheme of rule i; where that is not known, known is false.
func (h *holder) holds(c terms.Cond, i, k int) (holds, known bool) {
	switch c := c.(type) {
	case terms.Not:
		holds, known = h.holds(c.Cond, i, k)
		return !holds, known
	case terms.Fact:
		holds, known = h.facts[c]
		return holds, known
	case terms.Trait:
		return slices.Contains(h.rules[i].traits[k], c), c != terms.Statistics || h.takes != nil
	case terms.Key:
		return h.compares(c, i, k)
	}
	return false, false
}

// breaks says whether the configuration breaks a term, and fills in beside what.
func (h *holder) breaks(s *stated) bool {
	for _, c := range s.Conds() {
		if holds, known := h.holds(c, s.i, s.k); !holds || !known {
			return false
		}
	}
	if len(s.Beside) == 0 {
		return true
	}
	for j := range h.rules {
		for _, trait := range s.Beside {
			has := func(traits []terms.Trait) bool { return slices.Contains(traits, trait) }
			if k := slices.IndexFunc(h.rules[j].traits, has); k >= 0 && j != s.i {
				s.other = place{j, k}
				return true
			}
		}
	}
	return false
}

// hold makes the errors of all terms of an entry that the configuration breaks. key is the one that chooses the entry; the
// terms of a scheme are those of the k-th scheme of rule i.
func (h *holder) hold(list []terms.Term, name, key string, i, k int) {
	for _, chain := range terms.Chains(list) {
		switch {
		case key == "":
			h.chain(chain, name, key, i, k)
		case !slices.ContainsFunc(chain, func(t terms.Term) bool { return t.OfScheme() }):
			h.chain(chain, name, key, 0, 0)
		case !h.t.ByPath["sync"].Bad:
			h.ofSchemes(chain, name, key)
		}
	}
}

// ofSchemes holds all schemes to a chain of a policy. An error at a key of the run is told of the first scheme alone.
func (h *holder) ofSchemes(chain []terms.Term, name, key string) {
	for i := range h.rules {
		for k := range h.rules[i].phases {
			if s := h.chain(chain, name, key, i, k); s != nil && !s.Each && !strings.HasPrefix(s.At, ".") {
				return
			}
		}
	}
}

// chain tells of the first term that is broken.
func (h *holder) chain(chain []terms.Term, name, key string, i, k int) *stated {
	for n := range chain {
		s := &stated{Term: &chain[n], name: name, key: key, i: i, k: k}
		if h.breaks(s) {
			h.tell(s)
			return s
		}
	}
	return nil
}

// tell adds the error of a term that is broken, at its key.
func (h *holder) tell(s *stated) {
	at := h.place(s)
	if at == nil || at.Bad {
		return
	}
	severity := diag.Fatal
	if s.Warns {
		severity = diag.Warning
	}
	value := func(word string) string { return h.word(s, word) }
	h.Report(severity, h.NodeOf(h.t, at, h.Tree), at.Path, terms.Fill(s.Out, value), "%s", terms.Fill(s.Why, value))
}

// place is the key at which the error of a term stands.
func (h *holder) place(s *stated) (at *keys.Leaf) {
	if s.At == terms.AtTurn {
		return h.turn(s.i, s.k)
	}
	for path := range strings.SplitSeq(cmp.Or(s.At, s.key, ".scheme"), "|") {
		var l *keys.Leaf
		if name, ofRule := strings.CutPrefix(path, "."); !ofRule {
			l = h.t.ByPath[path]
		} else if l = h.RuleTables[s.i].ByPath[name]; name == "scheme" {
			l = h.rules[s.i].at
		}
		if l != nil {
			if at = l; l.Key != nil || strings.HasPrefix(path, ".") {
				break
			}
		}
	}
	return at
}

// turn is where the k-th scheme of a rule is named.
func (h *holder) turn(i, k int) *keys.Leaf {
	at := h.rules[i].at
	if len(h.rules[i].phases) < 2 {
		return at
	}
	return &keys.Leaf{Spec: at.Spec, Path: h.inScheme(i, k, "scheme"), Node: diag.Child(diag.Deref(at.Node.Content[k]), "scheme")}
}

// word is what stands in a term's text for a word in braces.
func (h *holder) word(s *stated, word string) string {
	where, key, path := strings.Cut(word, " .")
	switch {
	case path && where == "in":
		return h.inScheme(s.i, s.k, key)
	case path && where == "other in":
		return h.inScheme(s.other.rule, s.other.k, key)
	}
	switch word {
	case "name":
		return s.name
	case "scheme":
		return h.rules[s.i].phases[s.k].Scheme
	case "schemes":
		return h.Config.Sync[s.i].Schemes()
	case "rule":
		return h.RuleTables[s.i].Prefix
	case "other":
		return h.RuleTables[s.other.rule].Prefix
	case "other.scheme":
		return h.rules[s.other.rule].phases[s.other.k].Scheme
	case "awaits":
		return diag.FormatString(h.firstAwait().Match)
	case "pulling":
		return h.pulling(s.i)
	case "delta":
		return h.delta(s.i)
	}
	text, _ := h.textOfKey(word, s.i, s.k)
	return text
}

// textOfKey is the value of a key of the run, or with a dot before it of a rule's scheme; ok is false where there is none,
// or where it has a problem.
func (h *holder) textOfKey(path string, i, k int) (text string, ok bool) {
	name, ofRule := strings.CutPrefix(path, ".")
	l := h.t.ByPath[path]
	switch {
	case ofRule && name == "scheme":
		return h.rules[i].phases[k].Scheme, true
	case ofRule:
		own := keys.BindParams(h.rules[i].phases[k].Params)
		n := slices.IndexFunc(own, func(l *keys.Leaf) bool { return l.Spec.Path == name })
		if n < 0 {
			return "", false
		}
		l = own[n]
	case l == nil || l.Bad:
		return "", false
	default:
		if holds, known := h.t.Holds(l); !holds || !known {
			return "", false
		}
	}
	if word, isWord := l.Ptr.(*string); isWord {
		return *word, true
	}
	return keys.Format(l.Ptr), true
}

// compares says whether a key compares so with the value; where it is not known, known is false.
func (h *holder) compares(c terms.Key, i, k int) (holds, known bool) {
	have, known := h.textOfKey(c.Path, i, k)
	want := c.Value
	if other, isKey := strings.CutPrefix(want, "{"); isKey && known {
		want, known = h.textOfKey(strings.TrimSuffix(other, "}"), i, k)
	}
	switch c.Op {
	case "==":
		return have == want, known
	case "!=":
		return have != want, known
	case terms.IsWritten:
		l := h.t.ByPath[c.Path]
		return known && l.Key != nil, known
	}
	if !known {
		return false, false
	}
	return terms.Ordered(c.Op, keys.Amount(have), keys.Amount(want)), true
}

// firstAwait is the first rule whose schemes wait for stragglers; nil: none does.
func (h *holder) firstAwait() *settings.Rule {
	for i := range h.rules {
		if h.rules[i].phases != nil && h.Config.Sync[i].Awaits() {
			return &h.Config.Sync[i]
		}
	}
	return nil
}

// traitsOf lists what holds of the k-th scheme of a rule.
func (h *holder) traitsOf(i, k int, phases []settings.Phase) []terms.Trait {
	ph, r := &phases[k], &h.Config.Sync[i]
	e, ok := scheme.All.Lookup(ph.Scheme)
	if !ok {
		return nil
	}
	first := slices.IndexFunc(phases, func(ph settings.Phase) bool { return ph.Until.Await.IsSet() })
	return append(e.Traits(ph.Common, ph.Params), terms.Held(
		terms.T(terms.Deltas, r.Push == settings.PushDelta),
		terms.T(terms.AddsUpdates, r.Update == settings.UpdateAdd),
		terms.T(terms.Weighted, h.weighted(i, k)),
		terms.T(terms.Turns, len(phases) > 1),
		terms.T(terms.Ends, k < len(phases)-1 || ph.Until != (settings.Until{})),
		terms.T(terms.FirstAwait, k == first),
		terms.T(terms.EndsAtEpoch, ph.Until.Epochs > 0),
		terms.T(terms.Statistics, h.takes[i]),
	)...)
}

// weighted says whether the file gives the k-th scheme of a rule a weight.
func (h *holder) weighted(i, k int) bool {
	if weight := h.RuleTables[i].ByPath["weight"]; weight != nil {
		return weight.Key != nil
	}
	return diag.Child(diag.Deref(h.rules[i].at.Node.Content[k]), "weight") != nil
}

// inScheme is the path of a key of the k-th scheme of rule i.
func (w *checks) inScheme(i, k int, key string) string {
	if i < len(w.Config.Sync) && len(w.Config.Sync[i].Then) > 0 {
		return fmt.Sprintf("%s.schemes[%d].%s", w.RuleTables[i].Prefix, k, key)
	}
	return w.RuleTables[i].Prefix + "." + key
}

// pulling is the advice after which the workers of rule i pull before every iteration.
func (w *checks) pulling(i int) string {
	if w.RuleTables[i].ByPath["cache"] != nil {
		return "set " + w.RuleTables[i].Prefix + ".cache: false"
	}
	return "set " + w.RuleTables[i].Prefix + ".scheme: ssp"
}

// delta is the advice after which the workers of rule i push deltas.
func (w *checks) delta(i int) string {
	path := w.RuleTables[i].Prefix
	if update := w.RuleTables[i].ByPath["update"]; update.Key != nil {
		return path + ".push: delta with " + update.Path + ": add"
	}
	return path + ".push: delta"
}
