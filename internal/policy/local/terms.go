package local

import (
	"slices"

	"fluentps/internal/policy/terms"
)

// Facts lists what holds of a run with the policy.
func (e Entry) Facts() []terms.Fact {
	return append(terms.Held(
		terms.F(terms.ByOwnCount, e.Name != None && e.Weigh != BySamples),
		terms.F(terms.Fragments, e.Fragments),
		terms.F(terms.Periods, e.Periods),
		terms.F(terms.PerPush, e.PerPush),
	), e.Says.Facts...)
}

// Terms are what the policy does not go with.
func (e Entry) Terms() []terms.Term {
	if e.Name == None {
		return slices.Concat(termsOfNone, e.Says.Terms)
	}
	var list []terms.Term
	if !e.Open {
		list = append(list, terms.Term{If: when{terms.Is("local.steps", "==", "0")}, At: "local.steps",
			Why: "is 0: only " + terms.Or(OpenOnes()) + " takes as many steps as an exchange takes", Out: "set 1 or more"})
	}
	if !e.Periods {
		list = append(list, terms.Term{If: when{terms.Is("local.period.name", "!=", constant.Name)}, At: "local.period.name",
			Why: "{name} has rounds of its own, but the period is {local.period.name}",
			Out: "remove it, or choose policy " + terms.Or(OfPeriods())})
	}
	return slices.Concat(list, termsOfRun, termsOfRules, e.Says.Terms)
}

// Stated are those of the terms that this policy may break.
func (e Entry) Stated() []terms.Term { return terms.Of(e.Terms(), e.Facts()) }

// Facts lists what holds of a run with the period.
func (e PeriodEntry) Facts() []terms.Fact {
	return append(terms.Held(
		terms.F(terms.Votes, e.Votes),
		terms.F(terms.Endless, e.Endless),
		terms.F(terms.Changes, e.Name != constant.Name),
	), e.Says.Facts...)
}

// Terms are what the period does not go with.
func (e PeriodEntry) Terms() []terms.Term { return slices.Concat(termsOfPeriods, e.Says.Terms) }

// Stated are those of the terms that this period may break.
func (e PeriodEntry) Stated() []terms.Term { return terms.Of(e.Terms(), e.Facts()) }

type when = []terms.Cond

// termsOfNone refuse what only policies take that let workers take steps of their own.
var termsOfNone = []terms.Term{
	{If: when{terms.Is("local.host_steps", "!=", "1")}, At: "local.host_steps",
		Why: "{local.host_steps} steps between two averagings within a host need a policy for those between hosts",
		Out: "set local.policy: averaging, or another policy, or leave it out"},
	{If: when{terms.Is("local.steps", "!=", "1")}, At: "local.steps",
		Why: "{local.steps} steps between two exchanges need a policy that says what the servers do with them",
		Out: "set local.policy: averaging, or another policy", Else: true},
	{If: when{terms.Is("local.period.name", "!=", constant.Name)}, At: "local.period.name",
		Why: "every step is an exchange, but the period is {local.period.name}",
		Out: "remove it, or set local.policy: averaging", Else: true},
}

// termsOfRun are those of workers that take steps of their own, without regard to the schemes.
var termsOfRun = []terms.Term{
	{If: when{terms.Is("local.outer.name", "==", "sgd"), terms.Is("local.outer.momentum", ">", "0")}, At: "local.outer.momentum",
		Why: "sgd has no momentum, but it is {local.outer.momentum}",
		Out: "set local.outer.name: momentum or nesterov, or momentum: 0"},
	{If: when{terms.Is("baseline", "!=", "none")}, At: "baseline",
		Why: "exchanges gradients in every step, but local has policy {name}",
		Out: "set baseline: none, or local.policy: none"},
	{If: when{terms.Is("cluster.hierarchy", "!=", "none"), terms.Is("train.optimizer.name", "!=", "sgd")}, At: "train.optimizer.name",
		Why: "with cluster.hierarchy: node the parameters of a host's ranks are averaged, and the state of their optimizers " +
			"({train.optimizer.name}) is not kept in checkpoints",
		Out: "set sgd, with momentum in local.outer"},
	{If: when{terms.Is("local.state", "==", "average"), terms.Stateless}, At: "local.state",
		Why: "{train.optimizer.name} has no state to average",
		Out: "set own, or another optimizer"},
	{If: when{terms.Is("cluster.hierarchy", "==", "none"), terms.Is("local.host_steps", "!=", "1")}, At: "local.host_steps",
		Why: "{local.host_steps} steps between two averagings within a host, but cluster.hierarchy is none",
		Out: "set cluster.hierarchy: node, or leave it out"},
	{If: when{terms.Deals}, At: "work.policy",
		Why: "{work.policy} deals the batches of an iteration, but with local.policy {name} a push has several steps",
		Out: "set work.policy: fixed, or local.policy: none"},
	{If: when{terms.Is("train.optimizer.name", "==", "lars")}, At: "train.optimizer.name",
		Why: "lars needs the norms of whole layers, but a worker's own steps go along their pieces",
		Out: "choose another optimizer"},
}

// termsOfRules refuse schemes that do not go with steps of the workers' own.
var termsOfRules = []terms.Term{
	{If: when{terms.Copies}, At: ".scheme",
		Why: "with {scheme} a worker adds its pushes to a copy of the parameters, but with local.policy {name} it already " +
			"works on parameters of its own",
		Out: "{pulling}, or a scheme whose workers pull"},
	{Of: terms.ByOwnCount, If: when{terms.SeveralMeans}, At: ".scheme",
		Why: "{scheme} keeps means of pushes, weighted by their samples, but with local.policy {name} pushes do not count by samples",
		Out: "choose a scheme without such means, such as bsp, ssp or asp", Else: true},
	{If: when{terms.Is("local.state", "==", "average"), terms.SeveralMeans}, At: ".scheme",
		Why: "{scheme} keeps means of pushes, but with local.state: average pushes have values of the optimizer's state",
		Out: "choose a scheme without such means, such as bsp, ssp or asp", Else: true},
	{Of: terms.Fragments, If: when{terms.Skips}, At: ".scheme",
		Why: "{scheme} lets workers skip iterations, but with {name} an iteration exchanges only some of the shards",
		Out: "choose a scheme that waits for every push, such as bsp or ssp", Else: true},
	{Of: terms.Fragments, If: when{terms.Grants}, At: ".scheme",
		Why: "{scheme} lets workers take turns with all shards of a server, but with {name} an iteration exchanges only some of them",
		Out: "choose a scheme that decides for each shard alone, such as bsp or ssp", Else: true},
	{Of: terms.Fragments, If: when{terms.FirstAwait}, At: ".scheme",
		Why: "with {name} the shards have clocks of their own, and would change at different iterations",
		Out: "give until iterations", Else: true},
	{If: when{terms.Changes, terms.EndsAtEpoch, terms.Varies}, At: ".scheme",
		Why: "with local.period {local.period.name} nobody knows how many exchanges an epoch has",
		Out: "give until iterations, which count exchanges", Else: true},
	{If: when{terms.EndsAtEpoch, terms.Varies}, At: ".scheme",
		Why: "with local.policy {name} nobody knows how many exchanges an epoch has",
		Out: "give until iterations, which count exchanges", Else: true},
	{Of: terms.PerPush, If: when{terms.Whole}, Warns: true, Each: true, Else: true,
		Why: "the momentum of {name} counts pushes, each of which is a version, but with {rule} ({scheme}) a version is made " +
			"of the pushes of all workers",
		Out: "set {in .scheme}: asp, or ssp with a large bound"},
}

// termsOfPeriods follow from what a period lets workers do.
var termsOfPeriods = []terms.Term{
	{Of: terms.Votes, If: when{terms.LocalSteps, terms.No(terms.OneRound)},
		Why: "{name} lets all workers decide together when to exchange, but under {rule} ({scheme}) they are in different rounds",
		Out: "set {in .scheme}: bsp, or another period"},
	{Of: terms.Endless, If: when{terms.Periods, terms.Is("train.stop.epochs", "==", "0"), terms.Is("train.stop.samples", "==", "0")},
		Why: "{name} takes all steps that are left where the learning rate is low, but the run has no number of them, and " +
			"would never end",
		Out: "set train.stop.epochs or train.stop.samples too, or another period"},
}
