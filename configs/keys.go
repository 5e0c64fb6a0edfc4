package configs

import (
	"fluentps/comm"
	"fluentps/comm/payload"
	"fluentps/ps/optim"
	"fluentps/ps/scheme"
	"fluentps/ps/send"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// topKeys is the schema: every key outside rules and faults, in the order in which the resolved form prints
// them. A key that others depend on stands before them.
var topKeys = []key[Config]{
	{spec{path: "name", required: true, text: &runName, doc: "names the run folder"}, func(c *Config) any { return &c.Name }},
	{spec{path: "seed", def: "1", doc: "every random choice of the run follows from it"}, func(c *Config) any { return &c.Seed }},

	{spec{path: "baseline", def: BaselineNone, words: baselines.list, doc: "what to compare with: allreduce (MPI's own, no servers) or pslite (a server as PS-Lite has it)"}, func(c *Config) any { return &c.Baseline }},
	{spec{path: "baseline.keys", def: shard.KeysTensor, words: shard.KeyForms, only: when("baseline", BaselinePSLite), doc: "what has a key: a tensor, and a message has the list of all that a server holds; a tensor, each with a message of its own; or every scalar, 8 bytes of key for 4 of value"}, func(c *Config) any { return &c.BaselineKeys }},

	{spec{path: "cluster.servers", def: "1", span: from(1, 65535), doc: "ranks that serve"}, func(c *Config) any { return &c.Cluster.Servers }},
	{spec{path: "cluster.placement", def: "spread", words: shard.Placements, doc: "which ranks serve: spread over hosts, pack the first hosts, colocate with workers, mixed: servers serve alone and all workers serve a smaller part (BytePS)"}, func(c *Config) any { return &c.Cluster.Placement }},
	{spec{path: "cluster.hierarchy", def: "none", words: hierarchies.list, doc: "node: the gradients of the ranks of a host are summed before one of them, the worker, pushes and pulls for all"}, func(c *Config) any { return &c.Cluster.Hierarchy }},
	{spec{path: "cluster.shared_memory", def: SharedAuto, words: sharings.list, doc: "auto: servers and workers of one host read parameters and gradients in each other's memory; off: they send them"}, func(c *Config) any { return &c.Cluster.SharedMemory }},
	{spec{path: "cluster.bind", def: BindAuto, words: bindings.list, doc: "auto: where a host has more ranks than cores, and the launcher has bound none, each keeps to one core, in turn; off: the system moves them"}, func(c *Config) any { return &c.Cluster.Bind }},
	{spec{path: "cluster.memory_max", def: "8GiB", span: from(1<<20, 1<<50), doc: "buffers of one rank, beside the data set; plan shows what they are for; and the most that rows of data take while they are read"}, func(c *Config) any { return (*byteSize)(&c.Cluster.MemoryMax) }},

	{spec{path: "data.set", required: true, words: workload.SetNames, doc: "the reader of the data"}, func(c *Config) any { return &c.Data.Set }},
	{spec{path: "data.path", required: true, text: &filePath, only: when("data.set", "idx", "cifar10", "csv", "libsvm", "ratings"), doc: "the folder (idx, cifar10) or the training file (csv, libsvm, ratings: lines of row,column,value); .gz or not"}, func(c *Config) any { return &c.Data.Path }},
	{spec{path: "data.test", required: true, text: &filePath, only: when("data.set", "csv", "libsvm", "ratings"), doc: "the test file"}, func(c *Config) any { return &c.Data.Test }},
	{spec{path: "data.scale", def: "1", span: above(0), only: when("data.set", "csv"), doc: "features are divided by it"}, func(c *Config) any { return &c.Data.Scale }},
	{spec{path: "data.normalize", def: "false", only: when("data.set", "idx"), doc: "true: pixels have mean 0 and standard deviation 1 over the training images; false: they are 0 to 1"}, func(c *Config) any { return &c.Data.Normalize }},
	{spec{path: "data.augment.crop", def: "0", span: from(0, 65535), only: when("data.set", "idx", "cifar10"), doc: "training images are padded with so many zeros on each side, and cut back to their size at random"}, func(c *Config) any { return &c.Data.Augment.Crop }},
	{spec{path: "data.augment.flip", def: "false", only: when("data.set", "idx", "cifar10"), doc: "half of the training images are mirrored, left to right"}, func(c *Config) any { return &c.Data.Augment.Flip }},
	{spec{path: "data.center", def: "true", only: when("data.set", "ratings"), doc: "the mean of the training values is subtracted from all values, so that the factors need not learn it"}, func(c *Config) any { return &c.Data.Center }},
	{spec{path: "data.rows", def: "4096", span: from(1, 1e9), only: when("data.set", "generated", "generated_sparse", "generated_ratings"), doc: "training rows"}, func(c *Config) any { return &c.Data.Rows }},
	{spec{path: "data.test_rows", def: "1024", span: from(1, 1e9), only: when("data.set", "generated", "generated_sparse", "generated_ratings"), doc: "test rows"}, func(c *Config) any { return &c.Data.TestRows }},
	{spec{path: "data.image", items: 1, span: from(1, 65535), only: when("data.set", "generated"), doc: "rows are images of so many channels, height and width, such as [3, 32, 32]; without it they are no images"}, func(c *Config) any { return &c.Data.Image }},
	{spec{path: "data.features", def: "32", span: from(1, 1e6), only: when("data.set", "generated", "generated_sparse"), doc: "features of a row; of images their product"}, func(c *Config) any { return &c.Data.Features }},
	{spec{path: "data.classes", def: "10", span: from(2, 1e6), only: when("data.set", "generated"), doc: "classes"}, func(c *Config) any { return &c.Data.Classes }},
	{spec{path: "data.nonzeros", def: "8", span: from(1, 1e6), only: when("data.set", "generated_sparse"), doc: "features of a row that are not 0, at most; the first features are far more often among them than the last, as in text"}, func(c *Config) any { return &c.Data.Nonzeros }},
	{spec{path: "data.matrix.rows", def: "64", span: from(1, 1<<24), only: when("data.set", "generated_ratings"), doc: "rows of the matrix of which data.rows entries are known"}, func(c *Config) any { return &c.Data.Matrix.Rows }},
	{spec{path: "data.matrix.columns", def: "64", span: from(1, 1<<24), only: when("data.set", "generated_ratings"), doc: "its columns"}, func(c *Config) any { return &c.Data.Matrix.Columns }},
	{spec{path: "data.matrix.rank", def: "4", span: from(1, 4096), only: when("data.set", "generated_ratings"), doc: "rank of the product that the entries are made from; they have variance 1"}, func(c *Config) any { return &c.Data.Matrix.Rank }},
	{spec{path: "data.matrix.noise", def: "0.1", span: from(0, 1e6), only: when("data.set", "generated_ratings"), doc: "standard deviation of what is added to an entry: no model has a smaller test error"}, func(c *Config) any { return &c.Data.Matrix.Noise }},
	{spec{path: "data.partition", def: "disjoint_random", words: workload.PartitionNames, doc: "how workers share the rows"}, func(c *Config) any { return &c.Data.Partition }},

	{spec{path: "model.name", required: true, words: workload.ModelNames, doc: "the model; lenet: LeNet-5 for images; resnet20 to resnet110: residual networks for images, with batch norm; sparse_logistic: logistic, at a cost that goes with the entries of sparse rows; matrix_factorization: a product of low rank, for ratings; synthetic learns nothing: it shows what moving parameters costs"}, func(c *Config) any { return &c.Model.Name }},
	{spec{path: "model.layers", required: true, items: 1, span: from(1, 1e9), only: when("model.name", "mlp", "synthetic"), doc: "mlp: widths of the hidden layers; synthetic: parameters of each layer"}, func(c *Config) any { return &c.Model.Layers }},
	{spec{path: "model.compute", def: "0s", span: atLeast(0), only: when("model.name", "synthetic"), doc: "time of one step's computing, a third of it forward"}, func(c *Config) any { return &c.Model.Compute }},
	{spec{path: "model.rank", def: "10", span: from(1, 4096), only: when("model.name", "matrix_factorization"), doc: "numbers for each row and each column of the matrix"}, func(c *Config) any { return &c.Model.Rank }},

	{spec{path: "train.batch_per_worker", span: from(1, 1e9), doc: "samples of one worker in one iteration; or batch_global"}, func(c *Config) any { return &c.Train.BatchPerWorker }},
	{spec{path: "train.batch_global", span: from(1, 1e9), doc: "samples of all workers in one iteration; or batch_per_worker"}, func(c *Config) any { return &c.Train.BatchGlobal }},
	{spec{path: "train.optimizer.name", def: "sgd", words: optim.Names, doc: "the update rule"}, func(c *Config) any { return &c.Train.Optimizer.Name }},
	{spec{path: "train.optimizer.lr", required: true, span: above(0), doc: "learning rate of one update"}, func(c *Config) any { return &c.Train.Optimizer.LR }},
	{spec{path: "train.optimizer.momentum", def: "0.9", span: fromBelow(0, 1), only: when("train.optimizer.name", "momentum", "nesterov", "lars"), doc: "share of the last step in the next"}, func(c *Config) any { return &c.Train.Optimizer.Momentum }},
	{spec{path: "train.optimizer.trust", def: "0.001", span: above(0), only: when("train.optimizer.name", "lars"), doc: "norm of a layer's step beside that of its parameters, at lr 1 and without momentum"}, func(c *Config) any { return &c.Train.Optimizer.Trust }},
	{spec{path: "train.optimizer.beta1", def: "0.9", span: fromBelow(0, 1), only: when("train.optimizer.name", "adam"), doc: "share of the mean of gradients that remains in the next"}, func(c *Config) any { return &c.Train.Optimizer.Beta1 }},
	{spec{path: "train.optimizer.beta2", def: "0.999", span: fromBelow(0, 1), only: when("train.optimizer.name", "adam"), doc: "the same of the mean of their squares"}, func(c *Config) any { return &c.Train.Optimizer.Beta2 }},
	{spec{path: "train.optimizer.epsilon", def: "1e-8", span: from(optim.EpsilonMin, 1e30), only: when("train.optimizer.name", "adam"), doc: "added to the root of that mean: bounds the step where gradients are tiny"}, func(c *Config) any { return &c.Train.Optimizer.Epsilon }},
	{spec{path: "train.optimizer.weight_decay", def: "0", span: atLeast(0), doc: "L2 penalty, added to the gradient"}, func(c *Config) any { return &c.Train.Optimizer.WeightDecay }},
	{spec{path: "train.optimizer.l1", def: "0", span: from(0, 1e30), only: when("train.optimizer.name", "sgd"), doc: "L1 penalty: after each step, parameters go lr times so far towards 0 and stop there, so that many are exactly 0"}, func(c *Config) any { return &c.Train.Optimizer.L1 }},
	{spec{path: "train.optimizer.no_decay", def: `["*.bias", "bn*"]`, text: &glob, doc: "parameters that weight decay and l1 spare: biases and batch norm"}, func(c *Config) any { return &c.Train.Optimizer.NoDecay }},
	{spec{path: "train.schedule.name", def: "constant", words: optim.ScheduleNames, doc: "how the learning rate changes over iterations"}, func(c *Config) any { return &c.Train.Schedule.Name }},
	{spec{path: "train.schedule.every", span: atLeast(1), only: when("train.schedule.name", "step"), doc: "iterations between two drops; or at"}, func(c *Config) any { return &c.Train.Schedule.Every }},
	{spec{path: "train.schedule.at", items: 1, span: atLeast(1), only: when("train.schedule.name", "step"), doc: "iterations at which the rate drops; or every"}, func(c *Config) any { return &c.Train.Schedule.At }},
	{spec{path: "train.schedule.factor", def: "0.1", span: above(0), only: when("train.schedule.name", "step"), doc: "multiplies the rate at each drop"}, func(c *Config) any { return &c.Train.Schedule.Factor }},
	{spec{path: "train.schedule.over", required: true, span: atLeast(1), only: when("train.schedule.name", "cosine", "poly"), doc: "iterations after warm-up in which the rate falls to its floor; it stays there"}, func(c *Config) any { return &c.Train.Schedule.Over }},
	{spec{path: "train.schedule.floor", def: "0", span: fromBelow(0, 1), only: when("train.schedule.name", "cosine", "poly"), doc: "share of lr that the rate ends at; 0: nothing is learnt after over"}, func(c *Config) any { return &c.Train.Schedule.Floor }},
	{spec{path: "train.schedule.power", def: "2", span: above(0), only: when("train.schedule.name", "poly", "inv"), doc: "poly: the rate falls as this power of the share of over that remains, 1 is linearly; inv: it is divided by this power of 1 + gamma * iterations, 0.75 unless set, and 0.5 with gamma 1 is 1/sqrt(t)"}, func(c *Config) any { return &c.Train.Schedule.Power }},
	{spec{path: "train.schedule.gamma", def: "1e-4", span: above(0), only: when("train.schedule.name", "inv"), doc: "inv: what each iteration after warm-up adds to the divisor"}, func(c *Config) any { return &c.Train.Schedule.Gamma }},
	{spec{path: "train.schedule.warm_up", def: "0", span: atLeast(0), doc: "iterations of linear warm-up; 0: none"}, func(c *Config) any { return &c.Train.Schedule.WarmUp }},
	{spec{path: "train.stop.epochs", span: above(0), doc: "passes over the training rows, all workers together"}, func(c *Config) any { return &c.Train.Stop.Epochs }},
	{spec{path: "train.stop.samples", span: atLeast(1), doc: "samples over all workers"}, func(c *Config) any { return &c.Train.Stop.Samples }},
	{spec{path: "train.stop.updates", span: atLeast(1), doc: "versions of the lead shard"}, func(c *Config) any { return &c.Train.Stop.Updates }},
	{spec{path: "train.stop.time", span: above(0), doc: "training time"}, func(c *Config) any { return &c.Train.Stop.Time }},
	{spec{path: "train.stop.target", span: aboveTo(0, 1), doc: "test accuracy; needs evaluate.where: online"}, func(c *Config) any { return &c.Train.Stop.Target }},

	{spec{path: "evaluate.every_epochs", def: "1", span: atLeast(0), doc: "epochs between two evaluations; 0: only at the end"}, func(c *Config) any { return &c.Evaluate.EveryEpochs }},
	{spec{path: "evaluate.every_samples", def: "0", span: atLeast(0), doc: "samples over all workers between two evaluations, where epochs are too coarse; 0: as every_epochs says"}, func(c *Config) any { return &c.Evaluate.EverySamples }},
	{spec{path: "evaluate.where", def: "after", words: evaluations.list, doc: "after training by all ranks, or online beside it on server 0"}, func(c *Config) any { return &c.Evaluate.Where }},

	{spec{path: "device.kind", def: "auto", words: devices.list, doc: "what workers compute on; cuda: an NVIDIA GPU each; auto: that where there is one, else the CPU; servers always take the CPU"}, func(c *Config) any { return &c.Device.Kind }},
	{spec{path: "device.index", def: "-1", span: from(-1, 1023), only: when("device.kind", "cuda"), doc: "the GPU of every worker, among those visible on its host; -1: the workers of a host take one after the other"}, func(c *Config) any { return &c.Device.Index }},
	{spec{path: "device.gemm", def: "auto", words: gemms.list, only: when("device.kind", "cuda"), doc: "what multiplies matrices on a GPU: own kernels, cuBLAS (libcublas.so.13, 12 or 11), or auto: that where it is found"}, func(c *Config) any { return &c.Device.Gemm }},
	{spec{path: "device.math", def: "float32", words: maths.list, only: when("device.kind", "cuda"), doc: "tf32: cuBLAS rounds the factors of products to 10 bits, which is faster; our own kernels do not"}, func(c *Config) any { return &c.Device.Math }},
	{spec{path: "device.cuda_aware_mpi", def: CUDAAwareAuto, words: awarenesses.list, only: when("device.kind", "cuda"), doc: "gradients leave a GPU's memory over MPI, and parameters come there, without a copy in the host's; auto: if the MPI library says that it is CUDA-aware; on: else the run ends; off: never"}, func(c *Config) any { return &c.Device.CUDAAwareMPI }},
	{spec{path: "device.threads", def: "1", span: from(1, 1024), doc: "threads of one rank: of a worker's kernels, of a server's commits from 2 MiB on"}, func(c *Config) any { return &c.Device.Threads }},

	{spec{path: "shards.slice", def: "even", words: shard.Slices, doc: "how parameters are cut over servers: even parts, a shard per layer, P3's slices of layers, or PS-Lite's key range"}, func(c *Config) any { return &c.Shards.Slice }},
	{spec{path: "shards.max_bytes", def: "4MiB", span: from(shard.ElemBytes, comm.MessageMax), doc: "a piece is never longer"}, func(c *Config) any { return (*byteSize)(&c.Shards.MaxBytes) }},

	{spec{path: "sync", def: `[{match: "*", scheme: bsp}]`, doc: "rules in order; the first whose match fits a parameter's name takes it"}, func(c *Config) any { return &c.Sync }},
	{spec{path: "send.order", def: "fifo", words: send.Names, doc: "the order in which a worker's pieces leave"}, func(c *Config) any { return &c.Send.Order }},
	{spec{path: "send.window", def: "0B", span: from(0, 1<<50), only: when("send.order", "priority"), doc: "bytes in flight between a worker and a server, each way, while others wait; 0B: room for two of the largest pieces"}, func(c *Config) any { return (*byteSize)(&c.Send.Window) }},
	{spec{path: "send.credit", def: "16MB", span: from(1, 1<<50), only: when("send.order", "credit"), doc: "pieces leave while fewer bytes than that are in flight between a worker and a server, each way"}, func(c *Config) any { return (*byteSize)(&c.Send.Credit) }},
	{spec{path: "send.tune.points", def: "15", span: from(0, 1000), only: when("send.order", "credit"), doc: "credits that each worker tries before it keeps the best; 0: none"}, func(c *Config) any { return &c.Send.Tune.Points }},
	{spec{path: "send.tune.steps", def: "100", span: from(1, 1e6), only: when("send.order", "credit"), doc: "iterations over which the time of one is averaged"}, func(c *Config) any { return &c.Send.Tune.Steps }},
	{spec{path: "send.tune.min", def: "4MB", span: from(1, 1<<50), only: when("send.order", "credit"), doc: "smallest credit that is tried"}, func(c *Config) any { return (*byteSize)(&c.Send.Tune.Min) }},
	{spec{path: "send.tune.max", def: "64MB", span: from(1, 1<<50), only: when("send.order", "credit"), doc: "largest credit that is tried"}, func(c *Config) any { return (*byteSize)(&c.Send.Tune.Max) }},
	{spec{path: "send.overlap", def: "true", doc: "a piece leaves while backward goes on, and forward starts on a layer when its parameters are there; false: the exchange begins when backward is over, and ends before the next iteration begins"}, func(c *Config) any { return &c.Send.Overlap }},
	{spec{path: "payload.push", def: "float32", words: payload.Names, doc: "how pushes travel: all elements in full or in half as many bytes, or the largest ones alone, where the rest is added to the next push"}, func(c *Config) any { return &c.Payload.Push }},
	{spec{path: "payload.pull", def: "float32", words: densePayloads, doc: "how parameters travel to the workers; the servers keep float32"}, func(c *Config) any { return &c.Payload.Pull }},
	{spec{path: "payload.ratio", def: "0.01", span: aboveTo(0, 1), only: when("payload.push", sparsePayloads()...), doc: "topk: the share of a piece's elements that is sent; threshold: the largest share"}, func(c *Config) any { return &c.Payload.Ratio }},
	{spec{path: "payload.threshold", def: "0.001", span: from(0, 1e30), only: when("payload.push", "threshold"), doc: "elements of a magnitude up to it are not sent; a push is a sum over samples"}, func(c *Config) any { return &c.Payload.Threshold }},
	{spec{path: "work.policy", def: "fixed", words: policies.list, doc: "who computes which samples"}, func(c *Config) any { return &c.Work.Policy }},
	{spec{path: "local.steps", def: "1", span: from(1, 1), doc: "steps of a worker between two exchanges"}, func(c *Config) any { return &c.Local.Steps }},
	{spec{path: "faults", def: "[]", doc: "injected slowness, for experiments"}, func(c *Config) any { return &c.Faults }},

	{spec{path: "stall.warn", def: "1m", span: atLeast(0), doc: "a wait this long is explained; 0s: never"}, func(c *Config) any { return &c.Stall.Warn }},
	{spec{path: "stall.abort", def: "0s", span: atLeast(0), doc: "a wait this long ends the run with exit code 4; 0s: never"}, func(c *Config) any { return &c.Stall.Abort }},
	{spec{path: "stall.peer", def: "1m", span: atLeast(0), doc: "a rank that gives no sign of life for so long, killed, stopped or cut off, ends the run with exit code 4; 0s: never"}, func(c *Config) any { return &c.Stall.Peer }},
	{spec{path: "checkpoint.every", def: "0s", span: atLeast(0), doc: "time between two checkpoints while training goes on; 0s: one at the end; where workers are not in step, as under bsp, all pause for it"}, func(c *Config) any { return &c.Checkpoint.Every }},
	{spec{path: "checkpoint.every_updates", def: "0", span: atLeast(0), doc: "versions of the lead shard between two, in place of a time; 0: as every says"}, func(c *Config) any { return &c.Checkpoint.EveryUpdates }},
	{spec{path: "checkpoint.replica", def: "0", span: from(0, 1), doc: "1: checkpoints while training goes on are in the memory of hosts too, each file on its own host and the next; needs every or every_updates"}, func(c *Config) any { return &c.Checkpoint.Replica }},
	{spec{path: "checkpoint.keep", def: "3", span: from(0, 1000), doc: "checkpoints kept, the newest ones; one is written when training ends in any case; 0: none at all"}, func(c *Config) any { return &c.Checkpoint.Keep }},
	{spec{path: "checkpoint.best", def: BestNone, words: bests.list, doc: "by what on the test set the best checkpoint is kept beside the newest ones: accuracy or loss; server 0 looks at each, beside training; none: it is not"}, func(c *Config) any { return &c.Checkpoint.Best }},
	{spec{path: "metrics.sinks", def: "[jsonl, csv]", words: sinks.list, doc: "forms of the metrics file"}, func(c *Config) any { return &c.Metrics.Sinks }},
	{spec{path: "metrics.interval", def: "30s", span: atLeast(0.1), doc: "time between two progress lines"}, func(c *Config) any { return &c.Metrics.Interval }},

	{spec{path: "simulate.workers", def: "4", span: from(1, 1<<20), doc: "ranks that work"}, func(c *Config) any { return &c.Simulate.Workers }},
	{spec{path: "simulate.ranks_per_host", def: "1", span: from(1, 65535), doc: "ranks that share a host and its network card"}, func(c *Config) any { return &c.Simulate.RanksPerHost }},
	{spec{path: "simulate.compute", def: "10ms", span: above(0), doc: "computing of one worker in one iteration, before noise and faults"}, func(c *Config) any { return &c.Simulate.Compute }},
	{spec{path: "simulate.per_worker", def: "[]", span: aboveTo(0, 1e6), doc: "each worker's multiple of compute, in order; []: all alike"}, func(c *Config) any { return &c.Simulate.PerWorker }},
	{spec{path: "simulate.noise.kind", def: "none", words: noises.list, doc: "how computing varies: normal, exponential on top of compute, two_state with slow phases, or the trace of a real run instead of compute"}, func(c *Config) any { return &c.Simulate.Noise.Kind }},
	{spec{path: "simulate.noise.spread", def: "0.1", span: aboveTo(0, 1000), only: when("simulate.noise.kind", "normal", "exponential"), doc: "standard deviation (normal) or mean of what is added (exponential), as a share of compute"}, func(c *Config) any { return &c.Simulate.Noise.Spread }},
	{spec{path: "simulate.noise.factor", def: "4", span: aboveTo(1, 1000), only: when("simulate.noise.kind", "two_state"), doc: "a slow phase takes so many times as long"}, func(c *Config) any { return &c.Simulate.Noise.Factor }},
	{spec{path: "simulate.noise.enter", def: "0.01", span: aboveTo(0, 1), only: when("simulate.noise.kind", "two_state"), doc: "probability per iteration that a slow phase begins"}, func(c *Config) any { return &c.Simulate.Noise.Enter }},
	{spec{path: "simulate.noise.leave", def: "0.1", span: aboveTo(0, 1), only: when("simulate.noise.kind", "two_state"), doc: "probability per iteration that a slow phase ends"}, func(c *Config) any { return &c.Simulate.Noise.Leave }},
	{spec{path: "simulate.noise.path", required: true, text: &filePath, only: when("simulate.noise.kind", "trace"), doc: "iterations.csv of a run folder: its computing times without injected slowness, in order, and from the second on again"}, func(c *Config) any { return &c.Simulate.Noise.Path }},
	{spec{path: "simulate.network.bandwidth", def: "1250MB", span: from(0, 1<<50), doc: "bytes per second of a host's network card, each way; 0B: without limit"}, func(c *Config) any { return (*byteSize)(&c.Simulate.Network.Bandwidth) }},
	{spec{path: "simulate.network.latency", def: "20us", span: atLeast(0), doc: "of every message"}, func(c *Config) any { return &c.Simulate.Network.Latency }},
	{spec{path: "simulate.network.memory", def: "0B", span: from(0, 1<<50), doc: "bytes per second between ranks of one host; 0B: without limit"}, func(c *Config) any { return (*byteSize)(&c.Simulate.Network.Memory) }},
	{spec{path: "simulate.server.fold", def: "4GB", span: from(0, 1<<50), doc: "bytes per second at which a server adds up pushes; 0B: without limit"}, func(c *Config) any { return (*byteSize)(&c.Simulate.FoldRate) }},
	{spec{path: "simulate.server.commit", def: "2GB", span: from(0, 1<<50), doc: "bytes per second at which a server makes versions; 0B: without limit"}, func(c *Config) any { return (*byteSize)(&c.Simulate.CommitRate) }},
	{spec{path: "simulate.push_norm", def: "0.1", span: atLeast(0), doc: "magnitude of each element of a pushed mean, for schemes that ask for norms; parameters are 1"}, func(c *Config) any { return &c.Simulate.PushNorm }},
	{spec{path: "simulate.gradients", def: "false", doc: "real gradients in virtual time: the workers train, and times are still modelled"}, func(c *Config) any { return &c.Simulate.Gradients }},
}

// ruleKeys are the keys of every rule; those of its scheme come from the scheme's table. The default of fold
// is the scheme's.
var ruleKeys = []key[Rule]{
	{spec{path: "match", required: true, text: &glob, doc: "glob on names such as fc1.weight; * crosses dots"}, func(r *Rule) any { return &r.Match }},
	{spec{path: "servers", items: 1, span: from(0, 65534), doc: "indices of the servers whose shards it takes, from 0; a shard takes the first rule whose match and servers fit, wherever it lies; default: all servers"}, func(r *Rule) any { return &r.Servers }},
	{spec{path: "scheme", required: true, words: scheme.Names, doc: "when a pull is answered and how pushes become a version"}, func(r *Rule) any { return &r.Scheme }},
	{spec{path: "fold", words: folds.list, doc: "rank: an iteration's pushes are folded in rank order when it closes; arrival: as they come; default: the scheme's"}, func(r *Rule) any { return (*string)(&r.Common.Fold) }},
	{spec{path: "weight", def: "0", span: atLeast(0), doc: "where each push is a version: its share in an iteration; 0: 1/N; ssp and essp add deltas whole: 1"}, func(r *Rule) any { return &r.Common.Weight }},
	{spec{path: "push", def: "gradient", words: pushes.list, doc: "what a push carries: the gradient, or the delta of a step that the worker took with the optimizer of its own"}, func(r *Rule) any { return &r.Push }},
	{spec{path: "update", def: "optimizer", words: updates.list, doc: "how a commit changes the parameters: optimizer takes gradients, add takes deltas; default: what push needs; statistics are averaged under both"}, func(r *Rule) any { return &r.Update }},
}

// faultKeys are the keys of every fault.
var faultKeys = []key[Fault]{
	{spec{path: "worker", required: true, doc: `index of the worker from 0; "*" for all`}, func(f *Fault) any { return (*workerIndex)(&f.Worker) }},
	{spec{path: "slow.factor", span: above(1), doc: "computation takes so many times as long; or sleep"}, func(f *Fault) any { return &f.Slow.Factor }},
	{spec{path: "slow.sleep", span: above(0), doc: "each iteration takes so much longer; or factor"}, func(f *Fault) any { return &f.Slow.Sleep }},
	{spec{path: "slow.from", def: "0", span: atLeast(0), doc: "first iteration that is slowed"}, func(f *Fault) any { return &f.Slow.From }},
	{spec{path: "slow.until", def: "0", span: atLeast(0), doc: "first iteration that is not; 0: to the end"}, func(f *Fault) any { return &f.Slow.Until }},
}
