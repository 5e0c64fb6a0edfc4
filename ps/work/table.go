package work

import "slices"

// Entry is a policy.
type Entry struct {
	Name   string
	Rule   string
	Source string // with the evidence tag of the notes
	// Epochs says that each plan is one pass over all rows, at whose end a rank may have a sample more than its batch.
	Epochs bool
	make   func(s Spec, e Env) Policy
}

// Fixed is the name of the policy whose batches never change.
const Fixed = "fixed"

// All are the policies, the default first.
var All = []Entry{
	{Name: Fixed, Rule: "each rank that computes has its batch for the whole run, equal or by shares", Source: "ours"},
	{Name: "dbs", Rule: "before each epoch batch and data are dealt anew, in proportion to the samples per second of computing that each rank made in the epoch before; the first epoch is equal",
		Source: "DBS (Ye et al., arXiv 2007.11831), authors' code [A]; true largest remainders, at least one sample, and one number of iterations for all are ours, because the authors' rounding loses samples and iterations [X]", Epochs: true, make: newDBS},
	{Name: "r2sp_batch", Rule: "after a profile batches are dealt so that all ranks compute equally long, by the cost a + c b of each; later profiles change them only when they no longer fit",
		Source: "R2SP (Chen et al., INFOCOM 2019): batches by processing capability [P]; formulas, profile and hysteresis are reconstructed [R]", make: newR2SPBatch},
}

// Names lists the policies.
func Names() (names []string) {
	for _, e := range All {
		names = append(names, e.Name)
	}
	return names
}

// Lookup finds a policy.
func Lookup(name string) (Entry, bool) {
	i := slices.IndexFunc(All, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return All[i], true
}
