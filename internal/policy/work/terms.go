package work

import (
	"slices"

	"fluentps/internal/policy/terms"
)

// Facts lists what holds of a run with the policy.
func (e Entry) Facts() []terms.Fact {
	return append(terms.Held(
		terms.F(terms.Deals, e.Deals()),
		terms.F(terms.Steps, e.Steps),
		terms.F(terms.Moves, e.Moves),
		terms.F(terms.PushesOfOthers, e.Moves || e.Copies),
		terms.F(terms.Coded, e.Coded),
		terms.F(terms.Timed, e.Timed),
	), e.Says.Facts...)
}

// Terms are what the policy does not go with.
func (e Entry) Terms() []terms.Term {
	list := slices.Concat(termsOfBatches, termsOfRows, termsOfSteps)
	switch {
	case e.Scheme != "":
		list = slices.Concat(list, e.termsOfScheme())
	case e.Steps:
		list = slices.Concat(list, termsOfPushes)
	}
	return slices.Concat(list, e.Says.Terms)
}

// Stated are those of the terms that this policy may break.
func (e Entry) Stated() []terms.Term {
	return terms.Of(e.Terms(), append(e.Facts(), terms.Held(
		terms.F(terms.Unequal, e.Deals() || e.Cuts || e.Name == Fixed),
		terms.F(terms.Shares, e.Name == Fixed))...))
}

type when = []terms.Cond

const inStep = "set work.policy: fixed, or "

// termsOfBatches follow from batches that differ between ranks, or change.
var termsOfBatches = []terms.Term{
	{Of: terms.Deals, If: when{terms.Unequal, terms.Written("data.partition"), terms.Is("data.partition", "!=", "disjoint_random")},
		At:  "data.partition",
		Why: "work.policy {name} deals each rank its part of the rows at random, so they cannot be dealt as {data.partition}",
		Out: "set disjoint_random, or leave it out"},
	{Of: terms.Shares, If: when{terms.Written("data.partition"), terms.Is("data.partition", "!=", "disjoint_random")},
		At:  "data.partition",
		Why: "work.shares deals each rank its part of the rows at random, so they cannot be dealt as {data.partition}",
		Out: "set disjoint_random, or leave it out"},

	{Of: terms.Deals, If: when{terms.DropsStale},
		Why: "{name} deals the rows of an epoch to all ranks, but {rule} ({scheme}) drops stale pushes, and these samples would be lost",
		Out: inStep + "a scheme that drops nothing, such as asp, quorum or ssp"},
	{Of: terms.Deals, If: when{terms.Skips},
		Why: "{name} deals the rows of an epoch to all ranks, but {rule} ({scheme}) closes iterations without the pushes of " +
			"slow ones, and these samples would be lost",
		Out: inStep + "a scheme that waits for every push, such as bsp or ssp", Else: true},
	{Of: terms.Deals, If: when{terms.Alone},
		Why: "{name} makes fast ranks wait for the batches that follow a plan, but {rule} ({scheme} with strict: true) may " +
			"hold back a slow one until the fast ones continue: a deadlock",
		Out: "set {in .strict}: false, or work.policy: fixed", Else: true},
	{Of: terms.Unequal, If: when{terms.Copies}, At: "work.shares|work.policy",
		Why: "{name} weighs pushes by their samples, which differ, but with {rule} ({scheme}) workers add their own pushes " +
			"to copies of the parameters, all with the same weight",
		Out: "{pulling}, or leave the batches equal and whole", Else: true},
	{Of: terms.Unequal, If: when{terms.Alike}, At: "work.shares|work.policy",
		Why: "{name} weighs pushes by their samples, which differ, but under {rule} ({scheme}) all workers weigh alike, " +
			"whatever their batches",
		Out: "set {in .scheme}: quorum or softsync, or leave the batches equal and whole", Else: true},
	{Of: terms.Unequal, If: when{terms.Means}, At: "work.shares|work.policy",
		Why: "{name} weighs pushes by their samples, which differ, but {rule} ({scheme}) keeps means of pushes that all " +
			"weigh the same",
		Out: "set {in .versions}: single, or leave the batches equal and whole", Else: true},
}

// termsOfRows refuse programs that pick their samples themselves: who computes which rows must be known.
var termsOfRows = []terms.Term{
	{Of: terms.Deals, If: when{byScript},
		Why: "{name} deals the rows of an epoch to all ranks, but with data.sampler: script each program picks its samples itself", Out: setRun},
	{Of: terms.PushesOfOthers, If: when{byScript},
		Why: "{name} lets a worker compute the samples of others, but with data.sampler: script each program picks its samples itself",
		Out: setRun},
	{Of: terms.Coded, If: when{byScript},
		Why: "{name} needs several workers that compute the same samples, but with data.sampler: script each program picks its " +
			"samples itself",
		Out: setRun},
}

var byScript = terms.Is("data.sampler", "==", "script")

const setRun = "set work.policy: fixed, or data.sampler: run, and train with ps.steps"

// termsOfSteps are those of workers that compute in steps of work.micro samples, without regard to the schemes.
var termsOfSteps = []terms.Term{
	{Of: terms.Steps, If: when{terms.Is("baseline", "!=", "none")}, At: "baseline",
		Why: "exchanges whole iterations, but work.policy {name} cuts them",
		Out: "set baseline: none, or work.policy: fixed"},
	{Of: terms.Steps, If: when{terms.Is("cluster.hierarchy", "!=", "none")}, At: "cluster.hierarchy",
		Why: "sums the gradients of a host's ranks layer by layer, but work.policy {name} lets each rank compute in steps of its own",
		Out: "set hierarchy: none, or work.policy: fixed"},
	{Of: terms.Steps, If: when{terms.LocalSteps}, At: "local.policy",
		Why: "{local.policy} takes several optimizer steps in a round, but work.policy {name} cuts the batch of one",
		Out: "set local.policy: none, or work.policy: fixed"},
	{Of: terms.PushesOfOthers, If: when{terms.Residual}, At: "payload.push",
		Why: "{payload.push} remembers what a push left out, but with work.policy {name} a worker also pushes for others",
		Out: "set payload.push: float32, or work.policy: fixed"},
	{Of: terms.Coded, If: when{terms.Is("payload.push", "!=", "float32"), terms.No(terms.Residual)}, At: "payload.push",
		Why: "{payload.push} rounds pushes, and to decode them multiplies the errors by weights of up to work.code.condition_max",
		Out: "set payload.push: float32, or work.policy: fixed"},
	{Of: terms.Coded, If: when{terms.BatchNorm}, At: "model.name",
		Why: "{model.name} has statistics, which are values and not sums of changes: decoded approximately, after losses or " +
			"at a deadline, they would be too small",
		Out: "choose a model without batch norm, or set work.policy: fixed"},
	{Of: terms.Steps, If: when{terms.Is("work.threads_max", ">", "0"), terms.Is("device.kind", "!=", "cpu")}, At: "device.kind",
		Why: "must be cpu where work.threads_max moves threads between workers: a GPU has none to give",
		Out: "set device.kind: cpu, or work.threads_max: 0"},
	{Of: terms.Steps, If: when{terms.Is("work.threads_max", ">", "0"), terms.Is("work.threads_max", "<", "{device.threads}")},
		At:  "work.threads_max",
		Why: "is {work.threads_max}, but each worker begins with the {device.threads} of device.threads",
		Out: "set it to {device.threads} or more, or to 0"},
	{Of: terms.Coded, If: when{terms.Is("work.code.alpha", ">", "0"), terms.Is("work.code.alpha", "<=", "1")}, At: "work.code.alpha",
		Why: "is {work.code.alpha}: a straggler that takes no longer than the others is none, and nothing would be coded",
		Out: "set it above 1, or to 0"},
	{Of: terms.Coded, If: when{terms.Is("work.code.alpha", ">", "1"), terms.Is("work.code.stragglers", "==", "0")}, At: "work.code.alpha",
		Why: "is {work.code.alpha}, but work.code.stragglers is 0: all of a batch is its worker's alone",
		Out: "set work.code.stragglers to 1 or more, or alpha: 0"},
	{Of: terms.Moves, If: when{terms.Is("train.clip.norm", ">", "0"), terms.Is("train.clip.of", "==", "worker")}, At: "train.clip.norm",
		Why: "{train.clip.norm} clips the gradient of a worker's batch, but with work.policy {name} several workers compute parts of " +
			"it, and none of them knows its norm",
		Out: "set work.policy: fixed, or another that moves no samples, such as dbs or dropcompute, or leave train.clip out"},
	{Of: terms.Coded, If: when{terms.Is("train.clip.norm", ">", "0"), terms.Is("train.clip.of", "==", "worker"),
		terms.Is("work.code.alpha", ">", "1")}, At: "train.clip.norm",
		Why: "{train.clip.norm} clips the gradient of a worker's batch, but with work.code.alpha it is pushed in two parts, the first " +
			"before the other is computed",
		Out: "set work.code.alpha: 0, or leave train.clip out"},
	{Of: terms.Timed, If: when{terms.Is("work.time", "==", "0s")}, At: "work.time",
		Why: "is 0: {name} computes for a fixed time",
		Out: "set it to the computing time of an iteration, such as 100ms"},
}

// termsOfPushes refuse schemes that need whole pushes of a worker's own.
var termsOfPushes = []terms.Term{
	{Of: terms.Steps, If: when{terms.Copies},
		Why: "{name} lets workers compute in steps, but under {rule} ({scheme}) they keep copies of the parameters and add " +
			"their own pushes to them",
		Out: "{pulling}, or work.policy: fixed"},
	{Of: terms.Steps, If: when{terms.Grants},
		Why: "{name} lets workers compute in steps, but under {rule} ({scheme}) they wait for a grant before they push",
		Out: "set another scheme, or work.policy: fixed", Else: true},
	{Of: terms.Moves, If: when{terms.Norms},
		Why: "{name} lets workers compute in steps, but under {rule} ({scheme}) they tell the norms of whole pushes",
		Out: "set another scheme, or work.policy: fixed", Else: true},
	{Of: terms.Steps, If: when{terms.Deltas},
		Why: "{name} lets workers compute in steps, but under {rule} ({scheme}) they push deltas of whole iterations",
		Out: "set {rule}.push: gradient if the scheme takes it, or work.policy: fixed", Else: true},
}

// termsOfScheme refuse rules other than the one that the policy sets.
func (e Entry) termsOfScheme() []terms.Term {
	const closes, out = "{name} closes iterations itself, but {rule} ({schemes}) ", "leave sync out: the policy sets it"
	return []terms.Term{
		{If: when{terms.Turns}, Why: closes + "is not scheme: " + e.Scheme + " alone", Out: out},
		{If: when{terms.Is(".scheme", "!=", e.Scheme)}, Why: closes + "is not scheme: " + e.Scheme + " alone", Out: out, Else: true},
		{If: when{terms.Deltas, terms.No(terms.LocalSteps)},
			Why: closes + "takes deltas of whole iterations, and the policy pushes gradients of others", Out: out, Else: true},
		{If: when{terms.Is(".required", "!=", "{work.required}")},
			Why: closes + "closes them at required: {.required}, and work.required is {work.required}",
			Out: out + ", or set {in .required}: {work.required}", Else: true},
		{If: when{terms.Is(".contributors", "!=", "shard")},
			Why: closes + "has contributors: {.contributors}, and each shard takes the copies that it gets first",
			Out: "set {in .contributors}: shard", Else: true},
	}
}
