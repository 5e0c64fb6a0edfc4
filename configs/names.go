package configs

import "fluentps/ps/scheme"

// What a push carries, and how a commit changes the parameters. A gradient goes through the optimizer on the server; a
// delta went through the worker's own, and is added.
const (
	PushGradient    = "gradient"
	PushDelta       = "delta"
	UpdateOptimizer = "optimizer"
	UpdateAdd       = "add"
)

// What may stand in for our protocol, to be compared with it.
const (
	BaselineNone      = "none"
	BaselineAllreduce = "allreduce" // no servers: gradients are summed by MPI's collective, every rank takes the same step
	BaselinePSLite    = "pslite"    // pushes with keys, each acknowledged, a global barrier, then the pulls; no overlap
)

// Who crosses the network: every worker, or one for all that compute on a host.
const (
	HierarchyNone = "none"
	HierarchyNode = "node"
)

// Whether ranks of one host read each other's memory.
const (
	SharedAuto = "auto"
	SharedOff  = "off"

	BindAuto = "auto"
	BindOff  = "off"

	BestNone     = "none"
	BestAccuracy = "accuracy"
	BestLoss     = "loss"
)

// Whether MPI is given the GPU's memory.
const (
	CUDAAwareAuto = "auto"
	CUDAAwareOn   = "on"
	CUDAAwareOff  = "off"
)

// Names that have no table of their own: the key is the only place where they are chosen.
var (
	baselines   = []string{BaselineNone, BaselineAllreduce, BaselinePSLite}
	hierarchies = []string{HierarchyNone, HierarchyNode}
	sharings    = []string{SharedAuto, SharedOff}
	bindings    = []string{BindAuto, BindOff}
	bests       = []string{BestNone, BestAccuracy, BestLoss}
	evaluations = []string{"after", "online"}
	gemms       = []string{"own", "cublas", "auto"}
	maths       = []string{"float32", "tf32"}
	awarenesses = []string{CUDAAwareAuto, CUDAAwareOn, CUDAAwareOff}
	devices     = []string{"cpu", "cuda", "auto"}
	policies    = []string{"fixed"}
	folds       = []string{string(scheme.FoldRank), string(scheme.FoldArrival)}
	pushes      = []string{PushGradient, PushDelta}
	updates     = []string{UpdateOptimizer, UpdateAdd}
	sinks       = []string{"jsonl", "csv"}
	noises      = []string{"none", "normal", "exponential", "two_state", "trace"}
)
