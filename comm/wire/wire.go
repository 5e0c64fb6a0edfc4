// Package wire is the layout of the control messages: frames of fixed headers, little endian, each with a
// version byte, so that two builds that disagree say so instead of reading each other's bytes wrong, and of small
// pieces of parameters and gradients between them.
package wire

import "fmt"

// Kind of a control message.
type Kind uint8

const (
	Push       Kind = 1 + iota // worker to server: pieces of this shard follow, in frames or on Data
	Pull                       // worker to server: wants the parameters to start Iter
	Reply                      // server to worker: pieces of this shard follow, in frames or on Data
	Ack                        // server to worker: a duplicate push was seen and ignored; in rounds, each push was taken; else, a part that counts for another
	Left                       // worker to server: will neither push nor pull again
	Snapshot                   // any rank to server: send me your slices of snapshot Iter on Data
	Ready                      // server to rank 0: snapshot Iter of all my shards is kept
	Looked                     // rank 0 to server: snapshot Iter was evaluated; forget it and those before it
	Halt                       // any rank to rank 0: a StopAsked
	PushReady                  // worker to server: the push of Iter for the shards in your rotation is ready and held back
	Grant                      // server to worker: push them now
	Revoke                     // server to worker: the grant of this Epoch is void, announce the push again
	Publish                    // server to worker: pieces of this shard, which it did not ask for, follow as those of a reply do
	Taken                      // worker to server: the published version was taken; the next may come
	Ended                      // server to worker that has sent Left: no version of this shard comes any more
	Joined                     // worker to server: came back with nothing, and pulls all shards of the server
	Closed                     // server to server: Shard closed Iter, and these workers contributed; or, with Over, nobody is in the run
	Barrier                    // worker to scheduler (rank 0): all my pushes of Iter are acknowledged
	Release                    // scheduler to worker: all workers have come to the barrier of Iter
	Task                       // leader of a node to member: compute Iter, whose first Part layers are readable; or, with Stop, nothing more
	Readable                   // leader to member: so are the first Part layers
	Forwarded                  // member to leader: forward of Iter is over
	Summand                    // member to leader: the gradient of layer Part of Iter is final, in the memory that both share
	Saved                      // any rank to rank 0: a FileSaved
	Stale                      // server to rank 0: a Staleness
	Peer                       // worker to worker: what a policy of the work axis tells that of another
	PushPiece                  // worker to server: a piece of a push whose header went before; not a header, but PieceSize and the values
	ReplyPiece                 // server to worker: the same of a Reply or a Publish
	PieceThere                 // worker to server: a piece of a push whose header went before is in memory that both see; PieceSize alone
	Kinds
)

// Header is every control message but the pieces. Fields that a kind does not use are zero.
type Header struct {
	Kind    Kind
	Flags   uint8   // Stop, Over, Save, Ask
	Worker  int32   // index among workers, not a rank
	Shard   int32   // PushReady, Grant, Revoke: the first one in the rotation
	Part    int32   // task, partition or codeword id; 0 where an iteration is one push. Closed: which 64 workers. Task, Readable: layers.  Summand: the layer. Reply, Publish where memory is shared: the number of the version's buffer.
	Parts   int32   // how many parts are owed for (Owner, Iter); 1 where an iteration is one push. Closed: messages of this closing
	Owner   int32   // whose iteration this push counts for
	Epoch   int32   // Grant, Revoke: grants that the server revoked before this one
	Iter    int64   // Push, PushReady, Grant, Revoke: the iteration pushed. Pull: the iteration wanted. Reply: the iteration to compute next. Publish: the worker's pushes of iterations before it are in this version. Left: it has pushed those before. Ended: versions published to it. Closed: the iteration closed. Joined: the worker's clock
	Version int64   // Push: version the gradient was computed on. Reply, Publish: version sent. Closed: closings that the shard announced before
	Clock   int64   // Reply, Publish: v, the smallest clock of the shard's workers. Push: the largest v that the worker knew when it started Iter. Left, Joined: the worker's life, from 0
	Samples int64   // Push: samples summed in this push. Closed: bit b is worker 64*Part+b
	Correct int64   // Push: of these, how many the model had right before the update
	Loss    float64 // Push: sum of the loss over these samples
	Blocked int64   // Push, PushReady: nanoseconds that the worker waited for replies before this iteration
}

// Stop in Flags of Reply and Publish: start no new iteration, send Left to every server. Of Task: training is over.
const Stop = 1

// Save in Flags of Reply: mark the pushes of Iter, with which you may start now. Of Push: the version that closes Iter is to
// be saved.
const Save = 4

// Ask in Flags of Reply and Publish of the lead shard, whose copies workers keep: the budget is nearly used up; pull this shard
// before every iteration from now on. It is published no more.
const Ask = 16

// Over in Closed.Flags: nobody is in the run at the sender; Clock says how many lives of workers have ended there.
const Over = 2

// kinds says of each kind its name, and whether it is traffic of training. What is not, messages of evaluation, checkpoints,
// metrics and signals, may still be on its way when the traffic is counted.
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
	Barrier:    {"barrier", true},
	Release:    {"release", true},
	Task:       {"task", true},
	Readable:   {"readable", true},
	Forwarded:  {"forwarded", true},
	Summand:    {"summand", true},
	Saved:      {"saved", false},
	Stale:      {"stale", false},
	Peer:       {"peer", true},
	PushPiece:  {"pushpiece", true},
	ReplyPiece: {"replypiece", true},
	PieceThere: {"piecethere", true},
}

// Training says whether a message is traffic of training.
func (k Kind) Training() bool { return kinds[k].training }

func (k Kind) String() string {
	if k > 0 && k < Kinds {
		return kinds[k].name
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}
