// Package wire is the layout of the control messages: frames of fixed headers and, between them, small pieces of
// parameters and gradients. All numbers are little endian. Each record has a version byte, so that two different builds
// report the difference instead of misreading each other's bytes.
package wire

import "fmt"

// Kind of a control message.
type Kind uint8

const (
	Push  Kind = 1 + iota // worker to server: pieces of this shard follow, in frames or on Data
	Pull                  // worker to server: requests the parameters to start Iter
	Reply                 // server to worker: pieces of this shard follow, in frames or on Data
	// Ack is server to worker: the server ignored a duplicate push; in rounds, it accepted a push; otherwise, it accepted a part that
	// counts for another worker.
	Ack
	Left      // worker to server: this worker will neither push nor pull again
	Snapshot  // any rank to server: send me your slices of snapshot Iter on Data
	Ready     // server to rank 0: all my shards keep snapshot Iter
	Looked    // rank 0 to server: snapshot Iter was evaluated; drop it and earlier ones
	Halt      // any rank to rank 0: a StopAsked
	PushReady // worker to server: the push of Iter for the shards in your rotation is ready and held back
	Grant     // server to worker: push them now
	Revoke    // server to worker: the grant of this Epoch is void, announce the push again
	Publish   // server to worker: pieces of this shard follow unasked, like those of a reply
	Taken     // worker to server: the published version was adopted; send the next one
	Ended     // server to a worker that has sent Left: no further version of this shard follows
	Joined    // worker to server: the worker came back without any state, and pulls all shards of the server
	Closed    // server to server: Shard closed Iter, and these workers contributed; or, with Over, no worker is left in the run
	Normed    // server to server: the mean of Iter has squares of Samples, as bits of a float64, in Shard
	Barrier   // worker to scheduler (rank 0): all my pushes of Iter are acknowledged
	Release   // scheduler to worker: all workers have reached the barrier of Iter
	Task      // leader of a node to member: compute Iter, of which the first Part layers are readable; or, with Stop, end
	Readable  // leader to member: the first Part layers of Iter are readable
	Forwarded // member to leader: the forward pass of Iter has ended
	Summand   // member to leader: the gradient of layer Part of Iter is final, in shared memory
	Saved     // any rank to rank 0: a FileSaved
	Stale     // server to rank 0: a Staleness
	Peer      // worker to worker: a message of a policy of the work axis
	Computed  // member to leader: Iter is computed: Samples in Blocked nanoseconds
	// leader to rank 0, for rank Worker of those that compute: it has computed all iterations before Iter, the end of
	// its plan; with Over, it has left, after Epoch pauses
	Measured
	Dealt    // rank 0 to rank that computes: from Iter on, until Clock, rank Worker has a batch of Part; with Over, that is an epoch
	Vote     // worker to the lead shard's server: after step Clock of the round of Iter, exchange if Part is 1
	Verdict  // the lead shard's server to worker: after that step, exchange if Part is 1
	AskWaits // server to worker: its scheme asks whether the worker waits elsewhere
	// worker to server, once asked: it has the shard's reply, and waits for another shard, a change of scheme or its
	// batch; with Over, it goes on
	Waits
	Evaluate   // rank 0 to the rank of worker 0: evaluate snapshot Iter, if only workers have the model
	Evaluated  // that rank to rank 0: an Evaluation
	PushPiece  // worker to server: a piece of a push whose header went before; not a header, but PieceSize bytes and the values
	ReplyPiece // server to worker: a piece of a Reply or a Publish, likewise
	PieceThere // worker to server: a piece of a push whose header went before lies in shared memory; PieceSize bytes alone
	Kinds
)

// Header is every control message but the pieces. Fields that a kind does not use are zero.
type Header struct {
	Kind   Kind
	Flags  uint8 // Stop, Over, Save, Change, Ask
	Worker int32 // index among workers, not a rank
	Shard  int32 // PushReady, Grant, Revoke: the first one in the rotation

	// Part is the id of a task, partition or codeword; 0 where an iteration is one push. Closed: which 64 workers. Task, Readable:
	// layers. Summand: the layer. Reply, Publish with shared memory: the number of the version's buffer.
	Part  int32
	Parts int32 // how many parts (Owner, Iter) consists of; 1 where an iteration is one push. Closed: messages of this closing
	Owner int32 // the worker whose iteration this push counts for
	Epoch int32 // Grant, Revoke: grants that the server revoked before this one

	// Iter is, by kind:
	// Push, PushReady, Grant, Revoke: the iteration pushed. Pull: the iteration requested. Reply: the iteration to compute next.
	// Publish: this version contains the worker's pushes of all earlier iterations. Left: the worker has pushed all earlier ones.
	// Ended: versions published to the worker. Closed: the iteration closed. Joined: the worker's clock.
	Iter int64
	// Push: version the gradient was computed on. Reply, Publish: version sent. Closed: earlier closings of the shard.
	// AskWaits, Waits: number of the question
	Version int64

	// Clock is, by kind:
	// Reply, Publish: v, the smallest clock of the shard's workers. Push: the largest v that the worker knew when it started Iter.
	// Left, Joined: the worker's life, from 0. PushReady: nanoseconds for which the worker's last granted push to this rotation
	// waited for the worker's pushes to other servers.
	Clock   int64
	Samples int64   // Push: samples summed in this push. Closed: bit b is worker 64*Part+b. Normed: bits of a float64
	Correct int64   // Push: how many of these samples the model had right before the update
	Loss    float64 // Push: sum of the loss over these samples
	Blocked int64   // Push, PushReady: nanoseconds that the worker waited for replies before this iteration
}

// Stop in Flags of Reply and Publish: start no new iteration, send Left to every server. In Flags of Task: training has
// ended.
const Stop = 1

// Gone in Flags of Peer: the worker has left the run or was lost, and no policy has sent this.
const Gone = 255

// Save in Flags of Reply: mark your pushes of Iter, which you may start now. In Flags of Push: save the version that
// closes Iter.
const Save = 4

// Change in Flags of Reply: mark your pushes of Iter, which you may start now. In Flags of Push: shards whose scheme
// waits for a straggler change it behind Iter.
const Change = 8

// Ask in Flags of Reply and Publish of the lead shard, when workers keep copies of it: the budget is nearly used up;
// pull this shard before every iteration from now on. The server publishes it no more.
const Ask = 16

// Over in Closed.Flags: no worker is in the run at the sender; Clock is the number of workers' lives that have ended
// there. In Waits.Flags: the worker waits elsewhere no more.
const Over = 2

// kinds holds the name of each kind, and whether it is traffic of training. Other messages (of evaluation, checkpoints,
// metrics and signals) may still be in flight when the traffic is counted.
var kinds = [Kinds]struct {
	name     string
	training bool
}{
	Push:       {"push", true},
	Pull:       {"pull", true},
	Reply:      {"reply", true},
	Ack:        {"ack", true},
	Left:       {"left", true},
	Snapshot:   {"snapshot", false},
	Ready:      {"ready", false},
	Looked:     {"looked", false},
	Halt:       {"halt", false},
	PushReady:  {"pushready", true},
	Grant:      {"grant", true},
	Revoke:     {"revoke", true},
	Publish:    {"publish", true},
	Taken:      {"taken", true},
	Ended:      {"ended", true},
	Joined:     {"joined", true},
	Closed:     {"closed", true},
	Normed:     {"normed", true},
	Barrier:    {"barrier", true},
	Release:    {"release", true},
	Task:       {"task", true},
	Readable:   {"readable", true},
	Forwarded:  {"forwarded", true},
	Summand:    {"summand", true},
	Saved:      {"saved", false},
	Stale:      {"stale", false},
	Peer:       {"peer", true},
	Computed:   {"computed", true},
	Measured:   {"measured", false},
	Dealt:      {"dealt", false},
	Vote:       {"vote", true},
	Verdict:    {"verdict", true},
	AskWaits:   {"askwaits", true},
	Waits:      {"waits", true},
	Evaluate:   {"evaluate", false},
	Evaluated:  {"evaluated", false},
	PushPiece:  {"pushpiece", true},
	ReplyPiece: {"replypiece", true},
	PieceThere: {"piecethere", true},
}

// Training returns whether a message is traffic of training.
func (k Kind) Training() bool { return kinds[k].training }

func (k Kind) String() string {
	if k > 0 && k < Kinds {
		return kinds[k].name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}
