package terms

// Traits of a scheme with its keys.
const (
	Copies       Trait = "copies of the parameters that workers keep"
	Skips        Trait = "iterations that slow workers skip"
	DropsStale   Trait = "stale pushes that are dropped"
	Transit      Trait = "a bound on what each push changes"
	Alone        Trait = "pulls that wait for faster workers (`strict: true`)"
	Waits        Trait = "pulls that wait for slower workers"
	Means        Trait = "means of pushes"
	SeveralMeans Trait = "means of the pushes of several workers"
	Alike        Trait = "workers that weigh alike, whatever their batches"
	Norms        Trait = "norms of whole pushes"
	Grants       Trait = "pushes that wait for a grant"
	Whole        Trait = "versions of whole iterations"
	AddsWhole    Trait = "deltas that are added whole"
	RankFold     Trait = "`fold: rank`"
	OneRound     Trait = "one round for all workers"
)

// Traits of a rule, and of a scheme's place in it.
const (
	Deltas      Trait = "pushes of deltas"
	AddsUpdates Trait = "`update: add`"
	Weighted    Trait = "a weight that is written"
	Turns       Trait = "several schemes in turn"
	Ends        Trait = "another scheme that follows"
	FirstAwait  Trait = "an end that waits for a straggler"
	EndsAtEpoch Trait = "an end at an epoch"
	Statistics  Trait = "statistics of the model"
	Unlike      Trait = "another scheme than that of the policy alone"
)

// Facts of a run.
const (
	LocalSteps Fact = "optimizer steps that workers take by themselves (`local`)"
	BatchNorm  Fact = "a model with statistics, such as batch norm"
	Unequal    Fact = "pushes that weigh by their samples"
	Shares     Fact = "`work.shares`"
	Stateless  Fact = "an optimizer without state"
	Varies     Fact = "rounds of an unknown number of steps"
	Straggling Fact = "schemes that end when a straggler shows"
)

// Facts of a policy of work.
const (
	Deals          Fact = "batches and data that are dealt anew while the run goes on"
	Steps          Fact = "batches that are computed in steps (`work.micro`)"
	Moves          Fact = "samples that are given to other workers"
	PushesOfOthers Fact = "pushes for other workers"
	Coded          Fact = "pushes of coded sums"
	Timed          Fact = "a fixed time of computing"
)

// Facts of a payload, of a policy of local and of its period.
const (
	Lossy      Fact = "a lossy payload"
	Residual   Fact = "a payload that leaves elements out and sends them later"
	ByOwnCount Fact = "pushes that do not count by their samples"
	Fragments  Fact = "shards that are exchanged in some rounds only"
	Periods    Fact = "a period that `local.period` sets"
	PerPush    Fact = "momentum of the servers that counts pushes"
	Changes    Fact = "a period that changes"
	Votes      Fact = "workers that decide together when to exchange"
	Endless    Fact = "rounds that may take all steps that are left"
)
