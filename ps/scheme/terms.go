package scheme

import (
	"reflect"
	"slices"

	"fluentps/internal/policy/terms"
)

// Says is what an Entry states of itself beyond its other fields: traits, and Terms, which are what it does not go with.
type (
	Says = terms.Says
	Term = terms.Term
	Cond = terms.Cond // a condition of a Term: a Key, or Not
	Key  = terms.Key  // a comparison with a key of the YAML
	Not  = terms.Not

	Paper = terms.Paper // of Says.Papers: a run that uses the scheme cites it
)

// Terms are those of all schemes, by their traits, and then those of this one.
func (e Entry) Terms() []Term { return slices.Concat(termsOfKinds, e.Says.Terms) }

// Stated are those of the terms that a rule with the scheme may break, with its defaults or with another word in one key.
func (e Entry) Stated() []Term {
	may := e.Traits(Common{Fold: e.Fold}, e.Params())
	for k, d := range Docs(e.Params()) {
		for _, word := range d.Values {
			p := e.Params()
			reflect.ValueOf(p).Elem().Field(k).SetString(word)
			may = append(may, e.Traits(Common{Fold: e.Fold}, p)...)
		}
		p := e.Params()
		if f := reflect.ValueOf(p).Elem().Field(k); f.Kind() == reflect.Bool {
			f.SetBool(!f.Bool())
			may = append(may, e.Traits(Common{Fold: e.Fold}, p)...)
		}
	}
	return terms.Of(e.Terms(), may)
}

// Traits lists what holds of the scheme with these keys.
func (e Entry) Traits(c Common, p Params) []terms.Trait {
	means := func(workers int) bool { return e.Means != nil && e.Means(p, workers) > 0 }
	return append(terms.Held(
		terms.T(terms.Copies, e.CopiesOf(p) != Pulled),
		terms.T(terms.Skips, e.Behind),
		terms.T(terms.DropsStale, e.DropsStale),
		terms.T(terms.Transit, e.OwnUpdate),
		terms.T(terms.Alone, e.Alone != nil && e.Alone(p)),
		terms.T(terms.Waits, e.NeverWaits == nil || !e.NeverWaits(p)),
		terms.T(terms.Means, means(1)),
		terms.T(terms.SeveralMeans, means(2)),
		terms.T(terms.Norms, e.WantsNorms(p)),
		terms.T(terms.Grants, e.Scope == PerServer),
		terms.T(terms.Whole, e.Whole(c, p)),
		terms.T(terms.AddsWhole, e.Weight == DeltaWhole),
		terms.T(terms.RankFold, c.Fold == FoldRank),
	), e.Says.Traits...)
}

// WorkPolicy is the policy of the work axis that the scheme needs and that sets it; "": any, and rules choose it.
func (e Entry) WorkPolicy() string { return terms.Needed(e.Says.Terms, "work.policy") }

// termsOfKinds are the terms that follow from a trait, whatever the scheme.
var termsOfKinds = []Term{
	{Of: terms.Transit, If: []terms.Cond{terms.No(terms.AddsUpdates), terms.Is("train.optimizer.name", "!=", "sgd")},
		Why: "{scheme} bounds what each push changes, but under {train.optimizer.name} a push moves the parameters again with later ones",
		Out: "set train.optimizer.name: sgd, or {delta}"},
	{Of: terms.Transit, If: []terms.Cond{terms.No(terms.AddsUpdates), terms.Is("train.optimizer.weight_decay", ">", "0")},
		Why: "{scheme} bounds what each push changes, but weight_decay ({train.optimizer.weight_decay}) changes the parameters too",
		Out: "set train.optimizer.weight_decay: 0, or {delta}", Else: true},
	{Of: terms.Transit, If: []terms.Cond{terms.No(terms.AddsUpdates), terms.Is("train.optimizer.l1", ">", "0")},
		Why: "{scheme} bounds what each push changes, but l1 ({train.optimizer.l1}) changes the parameters too",
		Out: "set train.optimizer.l1: 0", Else: true},

	{Of: terms.Alone, If: []terms.Cond{terms.Ends},
		Why: "{scheme} with strict: true may hold back a slow worker until the fast ones continue, but these wait for it at " +
			"the change: a deadlock",
		Out: "set {in .strict}: false, or make it the last scheme, without until"},
	{Of: terms.Alone, Beside: []terms.Trait{terms.Waits, terms.Turns},
		Why: "{scheme} with strict: true may hold back a slow worker until the fast ones continue, but {other} " +
			"({other.scheme}) may make these wait for it: a deadlock",
		Out: "set {in .strict}: false, or {other in .scheme}: asp", Else: true},

	{Of: terms.AddsWhole, If: []terms.Cond{terms.Deltas, terms.No(terms.Weighted), terms.No(terms.RankFold), terms.No(terms.LocalSteps)},
		At: terms.AtTurn, Warns: true,
		Why: "{scheme} adds the deltas of N workers with weight 1 (as Bösen does), so an iteration moves the parameters N " +
			"times as far as the step of one worker",
		Out: "divide train.optimizer.lr by the number of workers and write weight: 1, or write another weight, such as 1/N " +
			"as a number"},

	{Of: terms.Copies, Beside: []terms.Trait{terms.Skips}, At: ".cache|.scheme",
		Why: "workers keep copies of these parameters from one iteration to the next, but {other.scheme} makes workers skip iterations",
		Out: "{pulling}, or another scheme in place of {other.scheme}"},

	{Of: terms.Skips, If: []terms.Cond{terms.Straggling},
		Why: "{scheme} lets workers skip iterations, but a change that waits for a straggler is announced with the pushes of " +
			"one iteration, which each worker must compute",
		Out: "take a scheme without drops, or let the schemes of match {awaits} end at an iteration or an epoch"},
	{Of: terms.Copies, If: []terms.Cond{terms.Straggling},
		Why: "{scheme} lets workers start iterations without a reply, but a reply announces a change that waits for a straggler",
		Out: "{pulling} or another scheme, or let the schemes of match {awaits} end at an iteration or an epoch", Else: true},

	{Of: terms.Means, If: []terms.Cond{terms.Statistics, terms.No(terms.Alike)},
		Why: "{scheme} keeps means of the pushes of each version, but pushes of the statistics of {model.name} are values, not changes",
		Out: "set {in .versions}: single, or put rules for the statistics before this one, whose match fits bn*.mean and bn*.variance"},
}
