package payload

import (
	"slices"

	"fluentps/internal/policy/terms"
)

// Facts lists what holds of a run whose pushes the codec encodes.
func (e Entry) Facts() []terms.Fact {
	return append(terms.Held(
		terms.F(terms.Lossy, e.Lossy),
		terms.F(terms.Residual, e.Residual),
	), e.Says.Facts...)
}

// Terms are what pushes of the codec do not go with.
func (e Entry) Terms() []terms.Term { return slices.Concat(termsOfKinds, e.Says.Terms) }

// Stated are those of the terms that this codec may break.
func (e Entry) Stated() []terms.Term { return terms.Of(e.Terms(), e.Facts()) }

var termsOfKinds = []terms.Term{
	{Of: terms.Residual, If: []terms.Cond{terms.Is("payload.ratio", ">", "0.5")}, At: "payload.ratio", Warns: true,
		Why: "each element takes 8 bytes with its index, so more than half of them take more bytes than float32 for all",
		Out: "set 0.5 or less, or payload.push: float32"},

	{Of: terms.Lossy, If: []terms.Cond{terms.Copies},
		Why: "under {rule} ({scheme}) workers add their own updates to their copies, but with {name} the servers would " +
			"receive different ones",
		Out: "set payload.push: float32, or let workers pull before every iteration"},
	{Of: terms.Residual, If: []terms.Cond{terms.Skips},
		Why: "{rule} ({scheme}) drops late pushes, and with each of them the elements that earlier pushes of {name} left out",
		Out: "use float32, float16 or bfloat16", Else: true},
	{Of: terms.Residual, If: []terms.Cond{terms.DropsStale},
		Why: "{rule} ({scheme}) drops stale pushes, and with each of them the elements that earlier pushes of {name} left out",
		Out: "use float32, float16 or bfloat16", Else: true},
	{Of: terms.Residual, If: []terms.Cond{terms.Transit},
		Why: "{rule} ({scheme}) bounds the updates in transit, but would not see what {name} keeps at the workers",
		Out: "use float32, float16 or bfloat16", Else: true},
}

// overflows warns of a codec with a smaller range than float32.
var overflows = []terms.Term{{Warns: true,
	Why: "a push is a sum over the samples of a batch, and float16 turns magnitudes from 65520 on into infinity and below 3e-8 into 0",
	Out: "bfloat16 has the range of float32"}}
