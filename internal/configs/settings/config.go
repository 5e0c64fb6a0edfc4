// Package settings has the Config: its values, their defaults, and what they mean for a run.
package settings

import (
	"math"
	"time"

	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/send"
	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics/records"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// Config is one experiment. Its defaults are filled and its values are checked.
type Config struct {
	Name              string             `yaml:"name,required" form:"run name" doc:"names the run folder"`
	Seed              uint64             `yaml:"seed" doc:"seed of every random choice of the run"`
	Baseline          string             `yaml:"baseline" values:"none,allreduce,pslite" doc:"train over another protocol, for comparison: allreduce (without servers) or pslite (the protocol of PS-Lite)"`
	BaselineAlgorithm string             `yaml:"baseline.algorithm" values:"auto,mpi,ring,halving" when:"baseline=allreduce" doc:"how gradients are added up: by MPI_Iallreduce, by our own ring, or by recursive halving and doubling; auto: the fastest of them, tried before training, and within a host mpi"`
	BaselineKeys      string             `yaml:"baseline.keys" values:"@key forms" when:"baseline=pslite" doc:"what has a key: list: each tensor, and one message has the keys of all tensors of a server; tensor: each tensor, in a message of its own; scalar: every scalar, with 8 bytes of key for 4 bytes of value"`
	Cluster           Cluster            `yaml:"cluster"`
	Data              dataset.Keys       `yaml:"data"`
	Model             workload.ModelSpec `yaml:"model"`
	Train             Train              `yaml:"train"`
	Evaluate          Evaluate           `yaml:"evaluate"`
	Device            Device             `yaml:"device"`
	Shards            shard.Spec         `yaml:"shards"`
	Sync              []Rule             `yaml:"sync" doc:"rules in order; a parameter takes the first rule whose match fits its name"`
	Send              send.Spec          `yaml:"send"`
	Payload           Payload            `yaml:"payload"`
	Work              work.Spec          `yaml:"work"`
	Local             local.Spec         `yaml:"local"`
	Faults            []Fault            `yaml:"faults" doc:"injected slowness and pauses, for experiments"`
	Stall             Stall              `yaml:"stall"`
	Checkpoint        Checkpoint         `yaml:"checkpoint"`
	Metrics           records.Spec       `yaml:"metrics"`
	Simulate          Simulate           `yaml:"simulate"`
}

// Defaults returns the defaults of all keys whose default does not depend on other keys.
func Defaults() Config {
	return Config{
		Seed:              1,
		Baseline:          BaselineNone,
		BaselineKeys:      shard.KeysTensor,
		BaselineAlgorithm: "auto",
		Cluster: Cluster{Servers: 1, Placement: "spread", Hierarchy: HierarchyNone, SharedMemory: SharedAuto,
			Bind: BindAuto, MemoryMax: 8 << 30},
		Data:  dataset.Defaults(),
		Model: workload.ModelDefaults(),
		Train: Train{
			Optimizer: Optimizer{Spec: optim.Defaults(), NoDecay: []string{"*.bias", "bn*"}},
			Clip:      optim.ClipDefaults(),
			Schedule:  optim.ScheduleDefaults(),
		},
		Evaluate:   Evaluate{EveryEpochs: 1, Where: "after"},
		Device:     Device{Kind: "auto", Index: -1, Gemm: "auto", Math: "float32", CUDAAwareMPI: CUDAAwareAuto, Threads: 1},
		Shards:     shard.Defaults(),
		Sync:       []Rule{{Match: "*", Phase: Phase{Scheme: "bsp"}}},
		Send:       send.Defaults(),
		Payload:    Payload{Push: "float32", Pull: "float32", Params: payload.Defaults()},
		Work:       work.Defaults(),
		Local:      local.Defaults(),
		Stall:      Stall{Warn: time.Minute, Peer: time.Minute},
		Checkpoint: Checkpoint{Keep: 3, Best: BestNone},
		Metrics:    records.Defaults(),
		Simulate: Simulate{
			Workers: 4, RanksPerHost: 1, Compute: workload.Cost{Fixed: 10 * time.Millisecond}, PushNorm: 0.1, FoldRate: 4e9, CommitRate: 2e9,
			Network: Network{Bandwidth: 1250e6, Latency: 20 * time.Microsecond},
		},
	}
}

// NewRule returns a rule with defaults only.
func NewRule() Rule { return Rule{Push: PushGradient, Update: UpdateOptimizer} }

// Cluster says which ranks serve.
type Cluster struct {
	Servers      int    `yaml:"servers" min:"1" max:"65535" doc:"ranks that serve"`
	Placement    string `yaml:"placement" values:"@placements" doc:"which ranks serve: spread: evenly over hosts; pack: on the first hosts; colocate: ranks that also work; mixed: ranks that only serve, and all workers with a smaller part each (BytePS)"`
	Hierarchy    string `yaml:"hierarchy" values:"none,node" doc:"node: the ranks of a host sum their gradients, and one of them, the worker, pushes and pulls for all"`
	SharedMemory string `yaml:"shared_memory" values:"auto,off" doc:"auto: servers and workers of one host read parameters and gradients in each other's memory; off: they send them"`
	Bind         string `yaml:"bind" values:"auto,off" doc:"auto: on a host with more ranks than cores, each rank is bound to one core in turn, unless the launcher has bound a rank; off: the system moves the ranks"`
	Link         string `yaml:"link,omitempty" form:"link rates" doc:"rate of the network card of a host, each way, as in 10Gbit; of hosts with another rate: 10Gbit,node3=1Gbit. none: a run measures it at its start. Shards and pieces are cut by it, and plan and the summary show the least time of an iteration that these cards allow"`
	MemoryMax    int64  `yaml:"memory_max" min:"1MiB" max:"1048576GiB" unit:"bytes" doc:"limit on all the memory of one rank: buffers, data set, row numbers and the program (plan lists them)"`
}

// Train is how the run learns and when it stops. Exactly one of the two batch sizes is set.
type Train struct {
	BatchPerWorker int            `yaml:"batch_per_worker,omitempty" min:"1" max:"1e9" doc:"samples of one worker in one iteration; or batch_global"`
	BatchGlobal    int            `yaml:"batch_global,omitempty" min:"1" max:"1e9" doc:"samples of all workers in one iteration; or batch_per_worker"`
	Optimizer      Optimizer      `yaml:"optimizer"`
	Clip           optim.Clip     `yaml:"clip"`
	Schedule       optim.Schedule `yaml:"schedule"`
	Stop           Stop           `yaml:"stop"`
}

// Optimizer is the update rule with its constants, and the parameters without weight decay.
type Optimizer struct {
	optim.Spec
	L1      float64  `yaml:"l1" min:"0" max:"1e30" when:"name=sgd" as:"float32" doc:"L1 penalty: after each step, every parameter moves towards 0 by lr times l1 and stops at 0, so that many are exactly 0"`
	NoDecay []string `yaml:"no_decay" form:"glob" doc:"parameters without weight decay and l1; the default names biases and batch norm"`
}

// Stop is the budget of the run, over all workers. The first limit that is reached ends the run; 0 or unset is no limit.
type Stop struct {
	Epochs  float64       `yaml:"epochs,omitempty" above:"0" doc:"passes over the training rows, all workers together"`
	Samples int64         `yaml:"samples,omitempty" min:"1" doc:"samples over all workers"`
	Updates int64         `yaml:"updates,omitempty" min:"1" doc:"versions of the lead shard"`
	Time    time.Duration `yaml:"time,omitempty" above:"0" doc:"training time"`
	Target  float64       `yaml:"target,omitempty" above:"0" max:"1" doc:"test accuracy; needs evaluate.where: online"`
}

// SampleBudget returns the limit in samples over all workers, or 0 for none. If epochs and samples are both set, the smaller one counts.
// rows is the size of the training set.
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

// Evaluate is when and where the test set is evaluated.
type Evaluate struct {
	EveryEpochs  float64 `yaml:"every_epochs" min:"0" doc:"epochs between two evaluations; 0: only at the end"`
	EverySamples int64   `yaml:"every_samples" min:"0" doc:"samples over all workers between two evaluations, if epochs are too coarse; 0: every_epochs decides"`
	Where        string  `yaml:"where" values:"after,online" doc:"after: after training, by all ranks; online: during training, by server 0"`
}

// Device is the hardware that computes.
type Device struct {
	Kind         string `yaml:"kind" values:"cpu,cuda,auto" doc:"what workers compute on; cuda: one NVIDIA GPU per worker; auto: a GPU if there is one, else the CPU; servers always use the CPU"`
	Index        int    `yaml:"index" min:"-1" max:"1023" when:"kind=cuda" doc:"the GPU of every worker, among those visible on its host; -1: the workers of a host take the GPUs in turn"`
	Gemm         string `yaml:"gemm" values:"own,cublas,auto" when:"kind=cuda" doc:"what multiplies matrices on a GPU: own kernels, cuBLAS (libcublas.so.13, 12 or 11), or auto: the newest cuBLAS that starts, else own kernels"`
	Math         string `yaml:"math" values:"float32,tf32" when:"kind=cuda" doc:"tf32: cuBLAS rounds the factors of products to 10 bits, which is faster; it acts on dense layers that cuBLAS multiplies, and not on convolutions, which our own kernels compute in float32"`
	CUDAAwareMPI string `yaml:"cuda_aware_mpi" values:"auto,on,off" when:"kind=cuda" doc:"MPI sends gradients from GPU memory and receives parameters there, without a copy in host memory; auto: if the MPI library reports that it is CUDA-aware; on: always, and the run ends if the library is not; off: never"`
	Threads      int    `yaml:"threads" min:"1" max:"1024" doc:"threads of one rank, for a worker's kernels and for a server's commits from 2 MiB on"`
}

// Rule is the scheme of the parameters whose names fit Match.
type Rule struct {
	Match   string  `yaml:"match,required" form:"glob" doc:"glob on names such as fc1.weight; * crosses dots"`
	Servers []int   `yaml:"servers,omitempty" min:"0" max:"65534" items:"1" doc:"indices of the servers, from 0, whose shards the rule takes; a shard takes the first rule whose match and servers fit; default: all servers"`
	Phase           // the scheme, or the first of several in turn
	Push    string  `yaml:"push" values:"gradient,delta" doc:"what a push carries: the gradient, or the delta of a step that the worker took with its own optimizer"`
	Update  string  `yaml:"update" values:"optimizer,add" doc:"how a commit changes the parameters: optimizer (for gradients) or add (for deltas); default: what push needs; statistics are averaged in both cases"`
	Then    []Phase // the schemes that follow
}

// Payload is the encoding of vectors in messages.
type Payload struct {
	Push string `yaml:"push" values:"@payloads" doc:"encoding of pushes: all elements in 4 or 2 bytes each, or only the largest elements, where the rest is added to the next push"`
	Pull string `yaml:"pull" values:"@dense payloads" doc:"encoding of parameters on the way to workers; the servers keep float32"`
	payload.Params
}

// Stall holds the limits on waiting.
type Stall struct {
	Warn  time.Duration `yaml:"warn" min:"0" doc:"the run explains a wait of this length; 0s: never"`
	Abort time.Duration `yaml:"abort" min:"0" doc:"a wait this long ends the run with exit code 4; 0s: never"`
	Peer  time.Duration `yaml:"peer" min:"0" doc:"a rank that is silent for this long (killed, stopped or disconnected) ends the run with exit code 4; 0s: never"`
}

// PeerMin is the shortest stall.peer. Heartbeats arrive a few times per second.
const PeerMin = time.Second

// Checkpoint is when a run writes checkpoints and how many it keeps.
type Checkpoint struct {
	Every        time.Duration `yaml:"every" min:"0" doc:"time between two checkpoints during training; 0s: only one at the end; unless the workers are in step, as under bsp, all of them pause for it"`
	EveryUpdates int64         `yaml:"every_updates" min:"0" doc:"versions of the lead shard between two checkpoints, in place of a time; 0: every decides"`
	Replica      int           `yaml:"replica" min:"0" max:"1" doc:"1: checkpoints during training are also in the memory of hosts, each file on its own host and on the next; needs every or every_updates"`
	Keep         int           `yaml:"keep" min:"0" max:"1000" doc:"how many of the newest checkpoints are kept; the end of training always writes one; 0: no checkpoint at all"`
	Best         string        `yaml:"best" values:"none,accuracy,loss" doc:"also keep the checkpoint with the best accuracy or loss on the test set; server 0 evaluates each checkpoint during training; none: keep no best one"`
}

// Simulate is the cluster that the verb simulate models. Rates are in bytes per second; 0 is no limit.
type Simulate struct {
	Workers        int           `yaml:"workers" min:"1" max:"1048576" doc:"ranks that work"`
	RanksPerHost   int           `yaml:"ranks_per_host" min:"1" max:"65535" doc:"ranks that share a host and its network card"`
	Compute        workload.Cost `yaml:"compute" above:"0" max:"86400" doc:"time that one worker computes in one iteration, without faults; for model synthetic the default is model.compute, if that is set"`
	PerWorker      []float64     `yaml:"per_worker" above:"0" max:"1e6" doc:"factor of compute for each worker, in order; []: 1 for all"`
	FixedPerWorker []float64     `yaml:"fixed_per_worker" min:"0" max:"1e6" doc:"factor of the fixed part of compute for each worker, in place of per_worker; []: per_worker"`
	Network        Network       `yaml:"network"`
	FoldRate       int64         `yaml:"server.fold" min:"0B" max:"1048576GiB" unit:"bytes" doc:"bytes per second at which a server sums pushes; 0B: no limit"`
	CommitRate     int64         `yaml:"server.commit" min:"0B" max:"1048576GiB" unit:"bytes" doc:"bytes per second at which a server makes versions; 0B: no limit"`
	PushNorm       float64       `yaml:"push_norm" min:"0" as:"float32" doc:"magnitude of each element of a push, for schemes that need norms; the parameters are 1"`
	Gradients      bool          `yaml:"gradients" doc:"the workers train with real gradients in virtual time; times are still modelled"`
}

// Network is the modelled network: every host has one full-duplex card.
type Network struct {
	Bandwidth int64         `yaml:"bandwidth" min:"0B" max:"1048576GiB" unit:"bytes" doc:"bytes per second of a host's network card, each way; 0B: no limit"`
	Latency   time.Duration `yaml:"latency" min:"0" doc:"latency of every message"`
	Memory    int64         `yaml:"memory" min:"0B" max:"1048576GiB" unit:"bytes" doc:"bytes per second between ranks of one host; 0B: no limit"`
}
