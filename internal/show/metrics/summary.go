package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"
)

// Float is a float64 whose JSON is null when it is not finite. Plain JSON cannot write such a number, but a diverged run needs a
// summary, too. Null reads back as NaN.
type Float float64

// Some is a pointer to v, for the fields of a Summary that may be absent.
func Some(v float64) *Float { f := Float(v); return &f }

// Mean is a mean of n values; 0 if there are none.
func Mean(sum, n int64) Float { return Float(float64(sum) / float64(max(n, 1))) }

// MarshalJSON writes the number, or null when it is not finite.
func (f Float) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(f))
}

// UnmarshalJSON reads a number, or null as NaN.
func (f *Float) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*f = Float(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(f))
}

// FinishedOK is Summary.Finished of a run that completed. That of a run that was stopped begins with FinishedStopped, whenever that
// was, because supervisors and job scripts look for it; behind that stands OutputClosed if nobody read its output any more.
// What the batch system knows of the stop stands behind ": ".
// Unevaluated ends it if only the evaluation after training was cut short.
const (
	FinishedOK      = "ok"
	FinishedStopped = "stopped by "
	OutputClosed    = "a closed output"
	Unevaluated     = "; it has trained to the end, but the evaluation is not complete"
)

// Roles are the keys of Summary.PerRole.
const (
	RoleWorker = "worker"
	RoleServer = "server"
)

// SummaryName is the file of a run folder that is written last: it says whether the run has finished. SummaryMax is the most bytes that
// are read of it; a summary of 100,000 workers has a third of that.
const (
	SummaryName = "summary.json"
	SummaryMax  = 64 << 20
)

// WhatIfName is the file of what the simulator told at the end of a run. It belongs to the summary.
const WhatIfName = "what-if.json"

// Summary is summary.json: a contract that scripts depend on. Times are in seconds, sizes in bytes. A nil pointer is null: not
// measured, or not requested. Its parts are written as one list of members, in this order.
type Summary struct {
	Job
	Extent
	Costs
	Quality
	Resumed   *Resumed `json:"resumed,omitempty"` // this part of the run resumed from a checkpoint
	Seed      uint64   `json:"seed"`
	CostModel []string `json:"cost_model,omitempty"` // of a simulated run: the models
	Work      string   `json:"work,omitempty"`       // how batches are dealt; empty: all are equal
	// what workers do between two exchanges, which are the iterations; empty: every step is an exchange
	Local            string    `json:"local,omitempty"`
	Payload          Payload   `json:"payload"` // how vectors were encoded
	ParametersSHA256 string    `json:"parameters_sha256"`
	Sparsity         *Sparsity `json:"sparsity,omitempty"` // of the final parameters; absent without train.optimizer.l1
	Clipping         *Clipping `json:"clipping,omitempty"` // absent without train.clip
	MaxLead          int64     `json:"max_lead"`           // largest c - v of a worker that starts an iteration
	Traffic
	PerShard  []ShardSummary       `json:"per_shard"`
	PerWorker []WorkerSummary      `json:"per_worker"`
	PerRole   map[string]RoleTimes `json:"per_role"` // by RoleWorker, RoleServer
	// of schemes, where a rule waits for stragglers; other changes are in the configuration
	Changes     []Change     `json:"changes,omitempty"`
	Evaluations []Evaluation `json:"evaluations"`
}

// Job is the part of a Summary that says what ran, on which ranks, and how it ended.
type Job struct {
	Name              string `json:"name"`
	Start             string `json:"start,omitempty"`              // token of the start that wrote this (internal/disk/lock); absent if simulated
	Finished          string `json:"finished"`                     // FinishedOK or the reason
	Checkpoint        string `json:"checkpoint,omitempty"`         // with the final parameters, in the run folder; absent if the run left none
	Mode              string `json:"mode"`                         // mpi, local, simulated
	Baseline          string `json:"baseline,omitempty"`           // allreduce, pslite; absent: our protocol
	BaselineKeys      string `json:"baseline_keys,omitempty"`      // with pslite the unit that has a key: list, tensor, scalar
	BaselineAlgorithm string `json:"baseline_algorithm,omitempty"` // with allreduce how gradients were added up: mpi, ring, halving
	Servers           int    `json:"servers"`
	Workers           int    `json:"workers"`
	Hierarchy         string `json:"hierarchy,omitempty"` // node: a worker is one or more ranks of a host
	Computing         int    `json:"computing,omitempty"` // with a hierarchy: the ranks that compute for all workers
	Crowded           bool   `json:"-"`                   // the ranks of rank 0's host outnumber its cores, for advice
}

// Extent is the part of a Summary that says how much was trained.
type Extent struct {
	Iterations int64 `json:"iterations"` // of the run: accepted pushes of the lead shard / workers; coded ones stand for all
	Updates    int64 `json:"updates"`    // versions of the lead shard
	Samples    int64 `json:"samples"`    // accepted, over all workers
}

// Costs is the part of a Summary that says what training took.
type Costs struct {
	WallS       Float   `json:"wall_s"`           // the whole job
	SetupS      Float   `json:"setup_s"`          // before the first iteration
	TrainS      Float   `json:"train_s"`          // from the first iteration to the last
	EvalS       Float   `json:"eval_s"`           // evaluation, during or after training
	CPUS        *Float  `json:"cpu_s"`            // user and system time of all processes while they trained
	Memory      *Memory `json:"memory,omitempty"` // of the processes; absent where the system does not tell
	SamplesPerS Float   `json:"samples_per_s"`
}

// Quality is the part of a Summary that says how good the parameters are.
type Quality struct {
	TrainLoss    *Float `json:"train_loss"`
	TestLoss     *Float `json:"test_loss"`
	ConstantLoss *Float `json:"constant_loss,omitempty"` // of the best constant prediction; nil: not known
	WorseHint    string `json:"worse_hint,omitempty"`    // which keys act if the loss is far above that
	Evaluated
	Target         *Float `json:"target"`           // the test accuracy to reach, or R2
	TargetReachedS *Float `json:"target_reached_s"` // when the first snapshot that reached it was taken
}

// Traffic is the part of a Summary that says what ranks exchanged, and how far their clocks agreed.
type Traffic struct {
	BytesSent     int64 `json:"bytes_sent"`
	BytesReceived int64 `json:"bytes_received"`
	// parameters and gradients that a rank read in the memory of another instead of receiving them
	BytesShared int64 `json:"bytes_shared"`
	// largest error of a rank's times against rank 0's clock, once drift is taken off; 0: one clock
	ClockErrorNS int64  `json:"clock_error_ns"`
	ClockDriftNS int64  `json:"clock_drift_ns"`      // largest drift of a rank's clock against rank 0's, from start to end
	BytesBetween *int64 `json:"bytes_between_hosts"` // the part of bytes_sent to ranks on another host
	Wire         *Wire  `json:"wire,omitempty"`      // with ranks on several hosts whose link is known: cluster.link, or measured
}

// Memory is the most memory that processes had at once, from their start to the end of training: their resident set,
// with the shared memory that they have touched, without the memory of GPUs. Ranks that are goroutines of one process
// have the peak of that process.
type Memory struct {
	PeakBytesMax int64   `json:"peak_bytes_max"` // the largest one
	Rank         int     `json:"rank"`           // the first rank that has it
	Role         string  `json:"role"`
	Host         string  `json:"host"`
	Processes    int     `json:"processes"`
	PeakBytes    []int64 `json:"peak_bytes"` // by rank
}

// Change says that the shards of a rule changed their scheme, because of what happened while training ran.
type Change struct {
	Iteration int64  `json:"iteration"` // the first under the new scheme
	Match     string `json:"match"`     // of the rule
	Scheme    string `json:"scheme"`    // the new one
	Why       string `json:"why"`
}

// Wire compares the iterations of a run with the least time that its network cards allow (internal/plan/network).
type Wire struct {
	LimitS     Float  `json:"limit_s"`     // least time of an iteration; 0: nothing crosses a card
	Host       string `json:"host"`        // whose card decides; "" if nothing crosses a card
	IterationS Float  `json:"iteration_s"` // mean time of an iteration of a worker, computing included
	Share      Float  `json:"share"`       // limit_s / iteration_s
	// rate of the slowest card each way, headers included; 0: cluster.link has none, and all ranks are on one host
	LinkBytesPerS Float `json:"link_bytes_per_s"`
	Measured      bool  `json:"measured"` // at the start of the run, since cluster.link says no rate
}

// SetWire compares training with the least time of an iteration, and the host whose card decides it. w has the rate of the link. TrainS and
// PerWorker are set.
func (s *Summary) SetWire(limit time.Duration, host string, w Wire) {
	var iterations int64
	for _, w := range s.PerWorker {
		iterations += w.Iterations
	}
	if iterations == 0 {
		return
	}
	each := float64(s.TrainS) * float64(len(s.PerWorker)) / float64(iterations)
	w.LimitS, w.Host, w.IterationS, w.Share = Float(limit.Seconds()), host, Float(each), Float(limit.Seconds()/each)
	s.Wire = &w
}

// Sparsity counts the parameters that are zero.
type Sparsity struct {
	Parameters int64 `json:"parameters"`
	Zeros      int64 `json:"zeros"` // exactly 0
}

// SparsityOf counts the zeros among the parameters of a model.
func SparsityOf(parameters []float32) *Sparsity {
	s := &Sparsity{Parameters: int64(len(parameters))}
	for _, v := range parameters {
		if v == 0 {
			s.Zeros++
		}
	}
	return s
}

// Resumed says where a run resumed. Iterations, samples and evaluations of the Summary count over the whole run. Times, bytes and
// the counters of shards and workers count over the part since then.
type Resumed struct {
	Checkpoint string `json:"checkpoint"` // its folder
	Iteration  int64  `json:"iteration"`
	Samples    int64  `json:"samples"`
	TrainedS   Float  `json:"trained_s"` // training time of the earlier parts
	// Unrecorded is how many iterations of all workers before this part have no row in iterations.csv: those of a part that was
	// killed, those beyond its limit, and those that a scheme skipped.
	Unrecorded int64 `json:"iterations_unrecorded"`
}

// Payload says how vectors were encoded.
type Payload struct {
	Push  string `json:"push"`  // codec of pushes with its numbers, such as topk (ratio 0.01)
	Pull  string `json:"pull"`  // codec of replies
	Lossy bool   `json:"lossy"` // the values that arrived differed from those that were sent
}

// TurnCounts are the counts of a shard whose scheme lets the workers push in turns, so that it delays pushes and no pulls. All
// shards of a server share one rotation, so each has the same counts.
type TurnCounts struct {
	DelayedGrants  int64 `json:"delayed_grants"`   // pushes that had to wait for their turn
	DelayedGrantsS Float `json:"delayed_grants_s"` // sum of these waits
	MissedTurns    int64 `json:"missed_turns"`     // turns that passed because their worker was late
	Strays         int64 `json:"strays"`           // pushes that landed out of turn
}

// ShardSummary is one row of Summary.PerShard. Staleness is the version at commit minus the version at pull.
type ShardSummary struct {
	Shard        int    `json:"shard"`
	Name         string `json:"name"` // for readers, such as fc1.weight
	Scheme       string `json:"scheme"`
	BoundKey     string `json:"-"` // the key of the configuration that bounds the lead, for advice
	Server       int    `json:"server"`
	Bytes        int64  `json:"bytes"` // of its parameters
	Pushes       int64  `json:"pushes"`
	Pulls        int64  `json:"pulls"`
	DelayedPulls int64  `json:"delayed_pulls"` // not answered at once, because the scheme delayed them
	DelayedS     Float  `json:"delayed_s"`     // sum of these delays
	Lags
	Dropped     int64            `json:"dropped"`               // pushes dropped with a reason
	DroppedFor  map[string]int64 `json:"dropped_for"`           // by reason, such as empty, gone, late, surplus; only reasons that occurred
	Skipped     int64            `json:"skipped"`               // iterations that a worker closed without a push
	Approximate int64            `json:"approximate,omitempty"` // versions of coded pushes that lack some of the whole gradient; 0 is left out
	Duplicates  int64            `json:"duplicates"`            // pushes acknowledged and ignored
	WaitedLast  int64            `json:"waited_last"`           // waits of workers in which this shard answered last
	CachedReads int64            `json:"cached_reads"`          // iterations that a worker started on its own copy, without a pull
	SavedBytes  int64            `json:"saved_bytes"`           // bytes of the replies that these reads saved
	Published   int64            `json:"published"`             // versions sent to workers without a pull
	TurnCounts
}

// Lags is the part of a ShardSummary that says how far versions and workers were behind.
type Lags struct {
	StalenessP50 int64 `json:"staleness_p50"`
	StalenessP99 int64 `json:"staleness_p99"`
	StalenessMax int64 `json:"staleness_max"`
	Staleness    *Hist `json:"-"`        // in histograms.csv
	LeadP50      int64 `json:"lead_p50"` // c - v of a pull when it was answered
	LeadP99      int64 `json:"lead_p99"`
	LeadMax      int64 `json:"lead_max"`
	Lead         *Hist `json:"-"` // in histograms.csv
}

// AddCached counts n reads of a worker's own copy of a shard of so many bytes.
func (s *ShardSummary) AddCached(n, bytes int64) {
	s.CachedReads += n
	s.SavedBytes += n * bytes
}

// SetHists fills the fields of staleness and lead.
func (s *ShardSummary) SetHists(stale, lead *Hist) {
	s.Staleness, s.Lead = stale, lead
	s.StalenessP50, s.StalenessP99, s.StalenessMax = stale.Quantile(0.5), stale.Quantile(0.99), stale.Max()
	s.LeadP50, s.LeadP99, s.LeadMax = lead.Quantile(0.5), lead.Quantile(0.99), lead.Max()
}

// WorkerSummary is one row of Summary.PerWorker.
type WorkerSummary struct {
	Worker     int             `json:"worker"`
	Rank       int             `json:"rank"`
	Host       string          `json:"host"`
	Device     string          `json:"device,omitempty"` // the device that it computed on
	Iterations int64           `json:"iterations"`
	Steps      int64           `json:"steps,omitempty"` // that the worker took on parameters of its own
	Samples    int64           `json:"samples"`
	Threads    Float           `json:"threads,omitempty"` // of its kernels in an iteration, the mean, where threads move between workers
	ComputeS   Float           `json:"compute_s"`
	BlockedS   Float           `json:"blocked_s"`
	MaxLead    int64           `json:"max_lead"`
	Pace       *Pace           `json:"-"` // for Notes; nil: not recorded
	Members    []MemberSummary `json:"members,omitempty"`
}

// MemberSummary is one rank that computes for a worker, in addition to the rank of the worker.
type MemberSummary struct {
	Rank     int    `json:"rank"`
	Device   string `json:"device,omitempty"`
	Samples  int64  `json:"samples"` // part of the worker's samples
	ComputeS Float  `json:"compute_s"`
	BlockedS Float  `json:"blocked_s"`
}

// AddMember adds a member to the row of its worker.
func (w *WorkerSummary) AddMember(m WorkerSummary) {
	w.Samples += m.Samples
	w.Members = append(w.Members,
		MemberSummary{Rank: m.Rank, Device: m.Device, Samples: m.Samples, ComputeS: m.ComputeS, BlockedS: m.BlockedS})
}

// Evaluation is the result of one evaluation on the test set. AtS and Samples are those of the snapshot, not of the evaluation.
type Evaluation struct {
	Samples  int64  `json:"samples"`
	Epoch    Float  `json:"epoch"`
	AtS      Float  `json:"at_s"`
	TestLoss *Float `json:"test_loss"`
	Evaluated
	Final bool `json:"final,omitempty"` // the parameters are those at the end of the run
}

// Conclude marks the last evaluation as final and copies its results to the summary. It must be one of the final parameters. The
// list is cloned, because the caller may share it.
func (s *Summary) Conclude() {
	s.Evaluations = slices.Clone(s.Evaluations)
	last := &s.Evaluations[len(s.Evaluations)-1]
	last.Final = true
	s.TestLoss, s.Evaluated = last.TestLoss, last.Evaluated
}

// startLine is the member of a summary that names the start.
var startLine = regexp.MustCompile(`(?m)^  "start": "[^"]*",\n`)

// WithStart is the text of a summary of an earlier start that another start, which found nothing left to do, makes its own.
func WithStart(summary []byte, start string) []byte {
	head, rest, _ := bytes.Cut(startLine.ReplaceAll(summary, nil), []byte("\n"))
	return fmt.Appendf(nil, "%s\n  \"start\": %q,\n%s", head, start, rest)
}

// JSON is the text of summary.json: indented, every key present, lists never null, a final newline.
func (s *Summary) JSON() ([]byte, error) {
	out := *s
	if out.PerShard == nil {
		out.PerShard = []ShardSummary{}
	}
	if out.PerWorker == nil {
		out.PerWorker = []WorkerSummary{}
	}
	if out.PerRole == nil {
		out.PerRole = map[string]RoleTimes{}
	}
	if out.Evaluations == nil {
		out.Evaluations = []Evaluation{}
	}
	data, err := json.MarshalIndent(&out, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}
