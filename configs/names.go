package configs

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
