package work

import (
	"fluentps/internal/policy/named"
	"fluentps/internal/policy/terms"
)

// Entry is a policy.
type Entry struct {
	Name   string
	Rule   string
	Source string // with the evidence tag of the notes
	// Epochs says that each plan is one pass over all rows, at whose end a rank may have a sample more than its batch.
	Epochs bool
	// Steps says that a worker computes its batch in steps of work.micro samples, and that a machine of package tasks
	// gives samples away, or ends the computing, between two steps.
	Steps bool
	Timed bool // work.time must be set
	Cuts  bool // a worker may leave out samples of its batch
	Moves bool // samples are given to other workers, whose pushes are parts of the iteration
	// Copies says that several workers compute the same batch, and the first copy counts. So an iteration may be closed that a worker
	// still computes, and workers pull ahead (internal/core/ahead.go).
	Copies bool
	// Coded says that a worker pushes one sum of the gradients of several workers' batches, which the servers decode
	// (package code). As soon as enough have pushed the iteration is closed, so workers pull ahead.
	Coded  bool
	Says   terms.Says
	Scheme string // the scheme that the policy needs, with work.required where it has that key; empty: any
	make   func(s Spec, e Env) Policy
}

// Names of policies: the one whose batches never change, the one with a message for each partition, and the one with sums of partitions.
const (
	Fixed   = "fixed"
	Partial = "partial"
	Coded   = "coded"
)

// All are the policies, the default first.
var All = named.Table[Entry]{
	{Name: Fixed, Rule: "each rank that computes has its batch for the whole run, equal or by shares", Source: "ours"},
	{Name: "dbs", Says: terms.Says{Papers: terms.Cite("ye2020dynamic")},
		Rule: "before each epoch batch and data are dealt anew, in proportion to the samples per second of " +
			"computing that each rank made in the epoch before; the first epoch is equal",
		Source: "DBS (Ye et al., arXiv 2007.11831), authors' code [A]; true largest remainders, at least one sample, and " +
			"one number of iterations for all are ours, because the authors' rounding loses samples and iterations [X]", Epochs: true, make: newDBS},
	{Name: "r2sp_batch", Says: terms.Says{Papers: terms.Cite("chen2019round")},
		Rule: "after a profile batches are dealt so that all ranks compute equally long, by the cost " +
			"a + c b of each; later profiles change them only when they no longer fit",
		Source: "R2SP (Chen et al., INFOCOM 2019): batches by processing capability [P]; formulas, profile and " +
			"hysteresis are reconstructed [R]", make: newR2SPBatch},
	{Name: "flexrr", Says: terms.Says{Papers: terms.Cite("harlap2016addressing")},
		Rule: "a worker that has fallen behind gives samples of its batch to workers that are done, a " +
			"chunk at a time; it takes back what they have not begun when it is done itself",
		Source: "FlexRR (Harlap et al., SoCC 2016) [P]; messages as in a third party's implementation [T], chunks " +
			"recalled [M]; the handshake of a recall is ours", Steps: true, Moves: true},
	{Name: "epsp", Says: terms.Says{Papers: terms.Cite("zhou2019falcon")},
		Rule: "elastic: a worker keeps the share of its batch that fits its speed, and the others get the " +
			"rest when the iteration starts; whoever is idle takes tasks that have not begun from the worker that is projected to finish last",
		Source: "Falcon's EPSP (Zhou et al., ICDCS 2019): straggler projection, elastic control of parallelism and the " +
			"transfer of blocked tasks to pioneers [P]; what parallelism is, all formulas and messages are reconstructed [R]",
		Steps: true, Moves: true},
	{Name: "anytime", Says: terms.Says{Papers: terms.Cite("ferdinand2019minibatch")},
		Rule:   "each worker computes for a fixed time, and its push weighs by the samples that it got through",
		Source: "Anytime minibatch (Ferdinand et al.), recalled [M]; that the first step always runs is ours", Steps: true,
		Timed: true, Cuts: true},
	{Name: "dropcompute", Says: terms.Says{Papers: terms.Cite("giladi2023variance")},
		Rule: "a worker that has computed for longer than tau leaves out the rest of its " +
			"micro-batches, and exchanges what it has; tau is set, or chosen by the times that were measured",
		Source: "DropCompute (Giladi et al., NeurIPS 2023): after each micro-batch, as in the authors' code [A]; the " +
			"formula of tau recalled [M]; profile, and who chooses, are ours", Steps: true, Cuts: true},
	{Name: Partial, Says: terms.Says{Papers: terms.Cite("ozfatura2018speeding")},
		Rule: "each worker computes the batches of load workers, its own first, and pushes each at once; " +
			"the first copy of each counts, and required different ones close an iteration, which ends the computing of all",
		Source: "multi-message communication (Ozfatura, Gunduz, Ulukus, arXiv 1808.02240) [P]; construction " +
			"reconstructed [R], orders of Amiri and Gunduz (arXiv 1810.09992) recalled [M]", Steps: true, Copies: true, Scheme: "drop"},
	{Name: Coded, Says: terms.Says{Papers: terms.Cite("tandon2017gradient")},
		Rule: "each worker computes the batches of s + 1 workers and pushes one weighted sum of their " +
			"gradients; the pushes of any N - s workers give the gradient of all batches, which ends the computing of the " +
			"others; with alpha each pushes a part of its own batch first, which is not coded",
		Source: "Gradient Coding (Tandon, Lei, Dimakis, Karampatziakis, ICML 2017), released code [A]; best of several " +
			"draws after our measurements [X]; deadline as in ErasureHead (Charles, Wang, Papailiopoulos) [P], by least " +
			"squares for cyclic codes; partial stragglers as in the released code [A]", Steps: true, Coded: true, Scheme: "coded"},
}

// Deals reports whether the policy deals the batches anew while the run goes on.
func (e Entry) Deals() bool { return e.make != nil }

// WithSteps lists the policies whose workers compute in steps.
func WithSteps() []string { return All.NamesOf(func(e Entry) bool { return e.Steps }) }

// Key is the name in the YAML.
func (e Entry) Key() string { return e.Name }
