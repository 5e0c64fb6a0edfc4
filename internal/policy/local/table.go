package local

import (
	"fluentps/internal/policy/named"
	"fluentps/internal/policy/terms"
)

// Take says how a worker takes over the servers' parameters.
type Take uint8

const (
	Replace Take = iota // its own become the servers'
	Mix                 // it keeps a share of its own
	Elastic             // it moves towards them, and pushes as much of a move towards itself
)

// Weigh says how much a push counts in a version.
type Weigh uint8

const (
	BySamples Weigh = iota // a version takes the mean of the changes, each weighted by its samples
	Equally                // the mean of the changes, all with the same weight
	Whole                  // their sum
)

// Entry is a policy.
type Entry struct {
	Name   string
	Rule   string
	Source string // with the evidence tag of the notes
	// Papers are keys of internal/plan/references.
	Papers []string
	Take   Take
	// Late says that a worker takes the answers over at the end of a round, after it has made its push.
	Late  bool
	Weigh Weigh
	// Fragments says that a shard is exchanged in some rounds only.
	Fragments bool
	// Periods says that local.period may be other than constant.
	Periods bool
	// Open says that local.steps may be 0: a round then lasts as long as an exchange.
	Open bool
	// Varies says whether the configuration leaves open how many steps a round has; nil: it does not. What local.period
	// leaves open is not part of it.
	Varies func(s *Spec) bool
	// PerPush says that the servers' rule counts pushes, each of which should be a version.
	PerPush bool
	// Outer is the rule of the servers where the configuration does not name it; "": it does, or they add.
	Outer string
	// Defaults are values of the policy for keys whose default is another one.
	Defaults map[string]string
	Says     terms.Says
	make     func(s Spec, e Env) Policy
}

// Runs says whether a worker computes while an exchange is in flight.
func (e *Entry) Runs() bool { return e.Late || e.Fragments }

// KeepsBase says whether a worker keeps a copy of the servers' parameters that it continued from, because answers arrive meanwhile.
func (e *Entry) KeepsBase() bool { return e.Runs() && e.Take != Elastic }

// All are the policies, the default first.
var All = named.Table[Entry]{
	{Name: None, Rule: "every step is an exchange of gradients", Source: "ours"},
	averaging, hpsgd, postLocal, diloco, streamingDiLoCo, slowMo, bmuf, asyncLocal, easgd,
}

// OuterRates lists the policies whose servers have a learning rate and a momentum; those of the others add what is pushed.
func OuterRates() []string {
	return All.NamesOf(func(e Entry) bool { return e.Name != None && e.Take != Elastic })
}

// OuterRules lists the policies whose servers have the rule that the configuration names.
func OuterRules() []string {
	return All.NamesOf(func(e Entry) bool { return e.Name != None && e.Take != Elastic && e.Outer == "" })
}

// OfPeriods lists the policies with local.period.
func OfPeriods() []string { return All.NamesOf(func(e Entry) bool { return e.Periods }) }

// OpenOnes lists the policies whose rounds may last as long as an exchange.
func OpenOnes() []string { return All.NamesOf(func(e Entry) bool { return e.Open }) }

// PeriodEntry is a way in which the number of steps between two exchanges changes.
type PeriodEntry struct {
	Name   string
	Rule   string
	Source string
	Papers []string // as in Entry
	// Votes says that workers decide together when a round ends, so that all must be in the same round.
	Votes bool
	// Endless says that a round may take all steps that the budget leaves.
	Endless bool
	Says    terms.Says
	make    func(s Spec, e Env) period
}

// period says how many steps the next round has.
type period interface {
	steps(n Now) int64
	Memory() []float64
	Recall(memory []float64) error
}

// Periods are the periods, the default first.
var Periods = named.Table[PeriodEntry]{constant, qsr, adaComm, selSync}

// periodOf makes the period of a policy.
func periodOf(s Spec, e Env) period {
	p, ok := Periods.Lookup(s.Period.Name)
	if !ok {
		panic("local: period " + s.Period.Name + " was not checked")
	}
	return p.make(s, e)
}

// Key is the name in the YAML.
func (e Entry) Key() string { return e.Name }

// Key is the name in the YAML.
func (e PeriodEntry) Key() string { return e.Name }
