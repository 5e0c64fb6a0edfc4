package settings

// The content of a push, and how a commit changes the parameters. A gradient goes through the optimizer on the server. A delta has gone
// through the worker's optimizer, and the server adds it.
const (
	PushGradient    = "gradient"
	PushDelta       = "delta"
	UpdateOptimizer = "optimizer"
	UpdateAdd       = "add"
)

// The protocols that may replace ours, for comparison.
const (
	BaselineNone      = "none"
	BaselineAllreduce = "allreduce" // no servers: gradients are summed by MPI's collective, every rank takes the same step
	BaselinePSLite    = "pslite"    // pushes with keys, each acknowledged, a global barrier, then the pulls; no overlap
)

// The ranks that exchange over the network: every worker, or one for all that compute on a host.
const (
	HierarchyNone = "none"
	HierarchyNode = "node"
)

// Values of cluster.shared_memory, cluster.bind and checkpoint.best.
const (
	SharedAuto = "auto"
	SharedOff  = "off"

	BindAuto = "auto"
	BindOff  = "off"

	BestNone     = "none"
	BestAccuracy = "accuracy"
	BestLoss     = "loss"
)

// Whether MPI reads and writes GPU memory.
const (
	CUDAAwareAuto = "auto"
	CUDAAwareOn   = "on"
	CUDAAwareOff  = "off"
)
