// Package configs loads the YAML of an experiment: strictly, and with every problem reported at once.
//
// The order of precedence is default < YAML < FLUENTPS_* environment < --set < a verb's own flag.
package configs

import (
	"math"
	"time"

	"fluentps/ps/send"
	"fluentps/ps/workload"
)

// Config is one experiment, defaults filled, checked.
type Config struct {
	Name     string // names the run folder: letters, digits, - _ .
	Seed     uint64 // every random choice of the run follows from it
	Baseline string // none; allreduce, pslite: what the run is compared with, instead of our protocol
	Cluster  Cluster
	Data     Data
	Model    Model
	Train    Train
	Evaluate Evaluate
	Device   Device
	Shards   Shards
	Sync     []Rule // in order; the first whose match fits a parameter's name takes it
	Send     Send
	Payload  Payload
	Work     Work
	Local    Local
	Faults   []Fault
	Stall    Stall
	Metrics  Metrics
	Simulate Simulate

	Checkpoint Checkpoint

	BaselineKeys string // pslite: what has a key of its own, one of shard.KeyForms(); "" with any other baseline
}

// Cluster says which ranks serve.
type Cluster struct {
	Servers   int    // at least 1
	Placement string // spread, pack, colocate, mixed
	Hierarchy string // HierarchyNone, HierarchyNode
	// SharedMemory says whether ranks of one host read each other's parameters and gradients in place.
	SharedMemory string // SharedAuto, SharedOff
	Bind         string // BindAuto, BindOff
	MemoryMax    int64  // bytes of buffers that one rank may use, beside the data set; and bytes that rows of data may take while they are read
}

// Data names the data set and how workers share it.
type Data struct {
	Set       string           // workload.SetNames()
	Path      string           // a folder (idx, cifar10) or the training file (csv, libsvm, ratings)
	Test      string           // the test file (csv, libsvm, ratings)
	Scale     float64          // csv: features are divided by it
	Normalize bool             // idx: pixels have mean 0 and standard deviation 1
	Center    bool             // ratings: the mean training value is subtracted
	Rows      int              // generated: training rows
	TestRows  int              // generated
	Features  int              // generated
	Image     []int            // generated: channels, height and width of a row, whose product is Features; empty: rows are no images
	Classes   int              // generated
	Nonzeros  int              // generated_sparse: features of a row that are not 0
	Matrix    Matrix           // generated_ratings
	Augment   workload.Augment // idx, cifar10: how training images are changed at random
	Partition string           // workload.PartitionNames()
}

// Matrix is what generated_ratings has entries of: a product of that rank, and noise.
type Matrix struct {
	Rows, Columns int
	Rank          int
	Noise         float64 // standard deviation; that of the product is 1
}

// Model names the model.
type Model struct {
	Name   string // workload.ModelNames()
	Layers []int  // mlp: widths of the hidden layers; synthetic: parameters of each layer
	// Compute is the time of one step's computing of synthetic.
	Compute time.Duration
	Rank    int // matrix_factorization
}

// Train says how to learn and when to stop. Exactly one of the two batch sizes is set.
type Train struct {
	BatchPerWorker int // samples of one worker in one iteration
	BatchGlobal    int // samples of all workers in one iteration, shared out by largest remainder
	Optimizer      Optimizer
	Schedule       Schedule
	Stop           Stop
}

// Optimizer is the update rule and its constants.
type Optimizer struct {
	Name        string // sgd, momentum, nesterov, adam, lars
	LR          float64
	Momentum    float64 // momentum, nesterov, lars
	Trust       float64 // lars
	Beta1       float64 // adam
	Beta2       float64 // adam
	Epsilon     float64 // adam
	WeightDecay float64
	L1          float64  // sgd: penalty on the magnitudes
	NoDecay     []string // globs over parameter names that both penalties spare; default: biases and batch norm
}

// Schedule scales the learning rate over iterations.
type Schedule struct {
	Name   string  // constant, step, cosine, poly
	Every  int64   // step: iterations between two drops; 0: At is used
	At     []int64 // step: the iterations at which the rate drops
	Factor float64 // step: multiplies the rate at each drop
	Over   int64   // cosine, poly: iterations from the end of warm-up to the floor
	Floor  float64 // cosine, poly: the share of the rate that it ends at
	Power  float64 // poly: exponent of the remaining share of Over; inv: of 1 + Gamma * iterations
	Gamma  float64 // inv
	WarmUp int64   // iterations of linear warm-up; 0: none
}

// Stop is the budget, counted over all workers; the first that holds ends the run. 0 or unset: no limit.
type Stop struct {
	Epochs  float64 // passes over the training rows
	Samples int64
	Updates int64 // versions of the lead shard
	Time    time.Duration
	Target  float64 // test accuracy; needs evaluate.where online
}

// SampleBudget is the limit in samples over all workers, of the two that are set the smaller; 0: none. rows is the size
// of the training set.
func (s Stop) SampleBudget(rows int) int64 {
	if s.Epochs <= 0 {
		return s.Samples
	}
	epochs := saturated(math.Ceil(s.Epochs * float64(rows)))
	if s.Samples > 0 {
		return min(s.Samples, epochs)
	}
	return epochs
}

// Evaluate says when the test set is looked at.
type Evaluate struct {
	EveryEpochs  float64 // 0: only at the end, unless EverySamples is set; at most one of the two is
	EverySamples int64   // over all workers
	Where        string  // after, online
}

// Device says what computes.
type Device struct {
	Kind  string // cpu, cuda; auto: a GPU where there is one
	Index int    // of the GPU of every rank that computes, among those visible; -1: each takes the next one of its host
	Gemm  string // on a GPU: own, cublas, auto
	Math  string // on a GPU: float32, tf32
	// CUDAAwareMPI says whether MPI sends from a GPU's memory and receives there: CUDAAwareAuto, CUDAAwareOn, CUDAAwareOff.
	CUDAAwareMPI string
	Threads      int // of one rank: kernels, large commits
}

// Shards says how parameters are cut.
type Shards struct {
	Slice    string // even, layer, range
	MaxBytes int64  // a piece is never longer
}

// Rule gives the parameters whose names fit Match their scheme.
type Rule struct {
	Match   string  // glob on names such as fc1.weight; * crosses dots
	Servers []int   // whose shards it takes, by index; nil: those of all
	Push    string  // what a push carries: gradient, delta
	Update  string  // how a commit changes the parameters: optimizer with gradients, add with deltas
	Phase           // the scheme, or the first of several in turn
	Then    []Phase // those that follow
}

// Send is the order in which the pieces of pushes and replies leave.
type Send struct {
	Order  string    // fifo, priority, credit
	Window int64     // priority: bytes in flight between a worker and a server; 0: room for two of the largest pieces
	Credit int64     // credit: a piece leaves while fewer bytes are in flight
	Tune   send.Tune // credit: how it is looked for

	Overlap bool // pieces travel while the worker computes; else only between two iterations
}

// Payload is how vectors travel: names of payload.All.
type Payload struct {
	Push      string  // of pushes
	Pull      string  // of replies; a dense one
	Ratio     float64 // topk: the share of a piece's elements that is sent; threshold: the largest share
	Threshold float64 // threshold: elements of a magnitude up to it are not sent
}

// Work is who computes which samples.
type Work struct{ Policy string } // fixed

// Local is what a worker does between exchanges.
type Local struct{ Steps int } // 1

// Fault is injected slowness, for experiments.
type Fault struct {
	Worker int // index of the worker; -1: all ("*")
	Slow   Slow
}

// Slow stretches every iteration's computation. Exactly one of Factor and Sleep is set.
type Slow struct {
	Factor float64       // computation takes Factor times as long; > 1
	Sleep  time.Duration // each iteration takes this much longer
	From   int64         // first iteration that is slowed
	Until  int64         // first iteration that is not; 0: to the end
}

// Stall says when a wait is called a stall.
type Stall struct {
	Warn  time.Duration // explain who waits for whom; 0: never
	Abort time.Duration // dump all state and leave with exit code 4; 0: never
	Peer  time.Duration // the same when a rank gives no sign of life for so long; 0: never, else at least PeerMin
}

// PeerMin is the shortest stall.peer: heartbeats are heard a few times a second.
const PeerMin = time.Second

// Checkpoint says what is kept of a run to go on from.
type Checkpoint struct {
	Every        time.Duration // between two while training goes on; 0: only at the end
	EveryUpdates int64         // the same in versions of the lead shard; at most one of the two is set
	Replica      int           // copies of those in between in the memory of another host; 0 or 1
	Keep         int           // checkpoints of a run, the newest ones; 0: none is written
	Best         string        // none, accuracy, loss: by what on the test set one more is kept, the best
}

// Metrics says where records go and how often a line is printed.
type Metrics struct {
	Sinks    []string // jsonl, csv
	Interval time.Duration
}

// Simulate is the cluster that simulate models. Rates are in bytes per second, and 0 is without a limit.
type Simulate struct {
	Workers      int
	RanksPerHost int
	Compute      time.Duration // of one iteration of one worker that nothing slows
	PerWorker    []float64     // each worker's multiple of Compute; empty: all alike
	Noise        Noise
	Network      Network
	FoldRate     int64   // at which a server adds a push to the pending sums
	CommitRate   int64   // at which a server makes a version
	PushNorm     float64 // magnitude of each element of a push's mean, where a scheme asks for norms; parameters are 1
	Gradients    bool    // gradients are real; else nothing is trained
}

// Noise varies the compute time from iteration to iteration, each worker on its own.
type Noise struct {
	Kind   string  // none, normal, exponential, two_state, trace
	Spread float64 // normal: standard deviation; exponential: mean of what is added; both as a share of compute
	Factor float64 // two_state: the slow state takes so many times as long
	Enter  float64 // two_state: probability per iteration to become slow
	Leave  float64 // two_state: probability per iteration to become fast again
	Path   string  // trace: the iterations of a real run; they stand for Compute, PerWorker and noise
}

// Network is what moves the bytes: every host has one full-duplex card.
type Network struct {
	Bandwidth int64         // of a card, each way
	Latency   time.Duration // of every message
	Memory    int64         // between two ranks of one host
}
