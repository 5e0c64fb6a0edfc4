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

// words is a list that no table has.
type words []string

func (w words) list() []string { return w }

// Names that have no table of their own: the key is the only place where they are chosen.
var (
	baselines   = words{BaselineNone, BaselineAllreduce, BaselinePSLite}
	hierarchies = words{HierarchyNone, HierarchyNode}
	sharings    = words{SharedAuto, SharedOff}
	bindings    = words{BindAuto, BindOff}
	bests       = words{BestNone, BestAccuracy, BestLoss}
	evaluations = words{"after", "online"}
	gemms       = words{"own", "cublas", "auto"}
	maths       = words{"float32", "tf32"}
	awarenesses = words{CUDAAwareAuto, CUDAAwareOn, CUDAAwareOff}
	devices     = words{"cpu", "cuda", "auto"}
	policies    = words{"fixed"}
	folds       = words{string(scheme.FoldRank), string(scheme.FoldArrival)}
	pushes      = words{PushGradient, PushDelta}
	updates     = words{UpdateOptimizer, UpdateAdd}
	sinks       = words{"jsonl", "csv"}
	noises      = words{"none", "normal", "exponential", "two_state", "trace"}
)
