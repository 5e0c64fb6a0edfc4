package metrics

import (
	"encoding/json"
	"math"
	"slices"
)

// Float is a float64 whose JSON is null when it is not finite, which plain JSON cannot write: a diverged
// run still gets a summary. Null reads back as NaN.
type Float float64

// Some is a pointer to v, for the fields of a Summary that may be absent.
func Some(v float64) *Float { f := Float(v); return &f }

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

// FinishedOK is Summary.Finished of a run that did all that it was asked for.
const FinishedOK = "ok"

// Roles are the keys of Summary.PerRole.
const (
	RoleWorker = "worker"
	RoleServer = "server"
)

// Summary is summary.json: a contract that scripts depend on. Times are in seconds, sizes in bytes. A nil
// pointer is null: not measured, or not asked for.
type Summary struct {
	Name             string               `json:"name"`
	Finished         string               `json:"finished"`                // FinishedOK or the reason
	Mode             string               `json:"mode"`                    // mpi, local, simulated
	Baseline         string               `json:"baseline,omitempty"`      // allreduce, pslite; absent: our protocol
	BaselineKeys     string               `json:"baseline_keys,omitempty"` // with pslite what has a key: list, tensor, scalar
	Servers          int                  `json:"servers"`
	Workers          int                  `json:"workers"`
	Hierarchy        string               `json:"hierarchy,omitempty"` // node: a worker is one rank or more of a host
	Computing        int                  `json:"computing,omitempty"` // with a hierarchy: the ranks that compute for all workers
	Iterations       int64                `json:"iterations"`          // of the run: accepted pushes of the lead shard / workers
	Updates          int64                `json:"updates"`             // versions of the lead shard
	Samples          int64                `json:"samples"`             // accepted, over all workers
	WallS            Float                `json:"wall_s"`              // the whole job
	SetupS           Float                `json:"setup_s"`             // before the first iteration
	TrainS           Float                `json:"train_s"`             // from the first iteration to the last
	EvalS            Float                `json:"eval_s"`              // evaluation, beside or after training
	CPUS             *Float               `json:"cpu_s"`               // user and system time of all processes while they trained
	SamplesPerS      Float                `json:"samples_per_s"`
	TrainLoss        *Float               `json:"train_loss"`
	TestLoss         *Float               `json:"test_loss"`
	TestAccuracy     *Float               `json:"test_accuracy"`       // null where there are no classes
	TestRMSE         *Float               `json:"test_rmse,omitempty"` // root of test_loss where that is a mean squared error
	Target           *Float               `json:"target"`              // test accuracy asked for
	TargetReachedS   *Float               `json:"target_reached_s"`    // when the snapshot was taken that reached it
	Resumed          *Resumed             `json:"resumed,omitempty"`   // this part of the run went on from a checkpoint
	Seed             uint64               `json:"seed"`
	CostModel        []string             `json:"cost_model,omitempty"` // of a simulated run: what was modelled
	Payload          Payload              `json:"payload"`              // how vectors travelled
	ParametersSHA256 string               `json:"parameters_sha256"`
	Sparsity         *Sparsity            `json:"sparsity,omitempty"` // of the final parameters; absent without train.optimizer.l1
	MaxLead          int64                `json:"max_lead"`           // largest c - v of a worker that starts an iteration
	BytesSent        int64                `json:"bytes_sent"`
	BytesReceived    int64                `json:"bytes_received"`
	BytesShared      int64                `json:"bytes_shared"`        // parameters and gradients that were read in another rank's memory instead
	ClockDriftNS     int64                `json:"clock_drift_ns"`      // largest of a rank's clock against rank 0's, start to end
	BytesBetween     *int64               `json:"bytes_between_hosts"` // of bytes_sent, those to ranks on another host
	PerShard         []ShardSummary       `json:"per_shard"`
	PerWorker        []WorkerSummary      `json:"per_worker"`
	PerRole          map[string]RoleTimes `json:"per_role"` // by RoleWorker, RoleServer
	Evaluations      []Evaluation         `json:"evaluations"`
}

// Sparsity counts parameters.
type Sparsity struct {
	Parameters int64 `json:"parameters"`
	Zeros      int64 `json:"zeros"` // exactly 0
}

// SparsityOf counts those of a model.
func SparsityOf(parameters []float32) *Sparsity {
	s := &Sparsity{Parameters: int64(len(parameters))}
	for _, v := range parameters {
		if v == 0 {
			s.Zeros++
		}
	}
	return s
}

// Resumed says where a run went on. Iterations, samples and evaluations of the Summary are of the whole run; times, bytes
// and the counters of shards and workers are of the part since then.
type Resumed struct {
	Checkpoint string `json:"checkpoint"` // its folder
	Iteration  int64  `json:"iteration"`
	Samples    int64  `json:"samples"`
	TrainedS   Float  `json:"trained_s"` // in the parts before
	// Unrecorded is how many iterations of all workers before this part have no row in IterationsName: those of a part that was
	// killed, those for which there was no room, and those that a scheme skipped.
	Unrecorded int64 `json:"iterations_unrecorded"`
}

// Payload says how vectors travelled.
type Payload struct {
	Push  string `json:"push"`  // of pushes: the codec and its numbers, such as topk (ratio 0.01)
	Pull  string `json:"pull"`  // of replies
	Lossy bool   `json:"lossy"` // what arrived was not exactly what was sent
}

// TurnCounts are of a shard whose scheme lets one worker push after the other: pushes are held back there, and not pulls. All
// shards of a server take turns together, and each has the same counts.
type TurnCounts struct {
	DelayedGrants  int64 `json:"delayed_grants"`   // pushes that had to wait for their turn
	DelayedGrantsS Float `json:"delayed_grants_s"` // how long, together
	MissedTurns    int64 `json:"missed_turns"`     // that passed because their worker was too late
	Strays         int64 `json:"strays"`           // pushes that landed out of turn
}

// ShardSummary is one row of Summary.PerShard. Staleness is the version at commit minus the version at pull.
type ShardSummary struct {
	Shard        int              `json:"shard"`
	Name         string           `json:"name"` // what a reader knows it by, such as fc1.weight
	Scheme       string           `json:"scheme"`
	BoundKey     string           `json:"-"` // that bounds the lead, for advice
	Server       int              `json:"server"`
	Bytes        int64            `json:"bytes"` // of its parameters
	Pushes       int64            `json:"pushes"`
	Pulls        int64            `json:"pulls"`
	DelayedPulls int64            `json:"delayed_pulls"` // not answered at once: the scheme held them back
	DelayedS     Float            `json:"delayed_s"`     // how long, together
	StalenessP50 int64            `json:"staleness_p50"`
	StalenessP99 int64            `json:"staleness_p99"`
	StalenessMax int64            `json:"staleness_max"`
	Staleness    *Hist            `json:"-"`        // in histograms.csv
	LeadP50      int64            `json:"lead_p50"` // c - v of the pulls when they were answered
	LeadP99      int64            `json:"lead_p99"`
	LeadMax      int64            `json:"lead_max"`
	Lead         *Hist            `json:"-"`            // in histograms.csv
	Dropped      int64            `json:"dropped"`      // pushes dropped with a reason
	DroppedFor   map[string]int64 `json:"dropped_for"`  // by reason: empty, gone, late, surplus; those that occurred
	Skipped      int64            `json:"skipped"`      // iterations that a worker closed without a push
	Duplicates   int64            `json:"duplicates"`   // pushes acknowledged and ignored
	WaitedLast   int64            `json:"waited_last"`  // how often a worker waited for this shard last
	CachedReads  int64            `json:"cached_reads"` // iterations that a worker started on its own copy, without a pull
	SavedBytes   int64            `json:"saved_bytes"`  // that their replies would have been
	Published    int64            `json:"published"`    // versions sent to workers that did not ask
	TurnCounts
}

// AddCached counts n reads of a worker's own copy of a shard of that many bytes.
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
	Device     string          `json:"device,omitempty"` // what it computed on
	Iterations int64           `json:"iterations"`
	Samples    int64           `json:"samples"`
	ComputeS   Float           `json:"compute_s"`
	BlockedS   Float           `json:"blocked_s"`
	MaxLead    int64           `json:"max_lead"`
	Pace       *Pace           `json:"-"` // for notes; nil: not kept
	Members    []MemberSummary `json:"members,omitempty"`
}

// MemberSummary is one rank that computes for a worker, beside the worker's own.
type MemberSummary struct {
	Rank     int    `json:"rank"`
	Device   string `json:"device,omitempty"`
	Samples  int64  `json:"samples"` // also in the worker's
	ComputeS Float  `json:"compute_s"`
	BlockedS Float  `json:"blocked_s"`
}

// AddMember puts a member's row under its worker's.
func (w *WorkerSummary) AddMember(m WorkerSummary) {
	w.Samples += m.Samples
	w.Members = append(w.Members, MemberSummary{Rank: m.Rank, Device: m.Device, Samples: m.Samples, ComputeS: m.ComputeS, BlockedS: m.BlockedS})
}

// Evaluation is one look at the test set. AtS and Samples are those of the snapshot, not of the evaluation.
type Evaluation struct {
	Samples      int64  `json:"samples"`
	Epoch        Float  `json:"epoch"`
	AtS          Float  `json:"at_s"`
	TestAccuracy *Float `json:"test_accuracy"`
	TestLoss     *Float `json:"test_loss"`
	TestRMSE     *Float `json:"test_rmse,omitempty"`
	Final        bool   `json:"final,omitempty"` // of the parameters that the run ended with
}

// Judge notes what a look at the test set has found: its mean loss, and the accuracy; or where classes says that there is
// none, the root of the loss.
func (e *Evaluation) Judge(loss, accuracy float64, classes bool) {
	e.TestLoss = Some(loss)
	if classes {
		e.TestAccuracy = Some(accuracy)
	} else {
		e.TestRMSE = Some(math.Sqrt(loss))
	}
}

// Unjudged says that nobody has looked at the test set yet, and what there would be to find: see Judge. A run that fails
// keeps it.
func (s *Summary) Unjudged(classes bool) {
	if !classes {
		s.TestRMSE = Some(math.NaN())
	}
}

// Conclude takes the last of the evaluations for the run's: it is of the final parameters. The list may be somebody else's.
func (s *Summary) Conclude() {
	s.Evaluations = slices.Clone(s.Evaluations)
	last := &s.Evaluations[len(s.Evaluations)-1]
	last.Final = true
	s.TestLoss, s.TestAccuracy, s.TestRMSE = last.TestLoss, last.TestAccuracy, last.TestRMSE
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
