package core

// Pulling ahead. Where others may close an iteration that a worker still computes, the worker must hear of it at once. So it
// asks for the next parameters when it starts an iteration, not when it has pushed it:
//
//	Worker                                    Server
//	Compute; Pull of the next ──────────────► held until the iteration is closed, whoever pushed
//	Push ───────────────────────────────────► Pushed ─► scheme: v moves
//	all have replied: Answered ◄───────────── Reply to all
//	Cancel; nothing more of it is pushed
//
// Replies land while the worker computes; the driver computes on a copy of the parameters. A shard that has replied gets no push of
// that iteration any more, and all of it may be cancelled when every shard has replied. A reply says nothing of the
// worker's own pushes, so the server acknowledges each of them, and the worker does not leave before.
//
// With pulling ahead a worker may push for others without being asked: several workers compute the batch of one owner, and
// the server takes the first copy as the owner's push (servernode/parts.go). An owner is in the run as long as one of the
// workers is that compute its batches. Only then the scheme hears that the owner has left. So nobody waits for a batch that
// nobody computes.
//
// No worker waits for ever. A worker that has started iteration t pushes it, and all others that it computes of t, to each shard that
// has not let it past t. So every shard hears of each owner in the run of v or of a later iteration, and v moves on.

// Ahead says that the workers pull ahead.
type Ahead struct {
	// Owners are, per worker, the workers whose iterations it pushes; itself is the first. nil: itself alone.
	Owners [][]int32
	// Apart says that a worker pushes each of its own iterations in two parts, in order, and that the scheme hears of
	// each: they are not added up, because the first counts also if the second never comes. The second ends the
	// iteration. Owners is nil.
	Apart bool
}

// AheadSlots is the number of pushes that a shard may hold beside one per worker.
func AheadSlots(owners [][]int32) (n int32) {
	for _, of := range owners {
		n += int32(len(of)) - 1
	}
	return n
}

// PullAgain is the Part of a pull that aligns its worker.
const PullAgain = 1
