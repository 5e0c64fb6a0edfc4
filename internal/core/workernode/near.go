package workernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// The worker's half of shared memory (near.go of servernode says what both halves do).

// ShareMemory makes the worker read the versions of these shards in their server's memory. It must be called before the
// first input.
func (w *Worker) ShareMemory(near func(shard int32) bool) {
	for s := range w.shards {
		w.shards[s].near = near(int32(s))
	}
}

func (w *Worker) isNear(s int32) bool { return w.shards[s].near }

// pushIsReadInPlace says whether the server reads the worker's gradients of the shard in the worker's memory.
func (w *Worker) pushIsReadInPlace(s int32) bool { return w.isNear(s) && w.kind(s) == scheme.Pulled }

// readReply handles a reply whose version is read at once.
func (w *Worker) readReply(m wire.Header, out []core.Effect) []core.Effect {
	sh := &w.shards[m.Shard]
	for _, p := range w.plan.Shards[m.Shard].Pieces {
		w.early.pieces[p.ID].landed = true
		sh.landed++
		if w.early.pieces[p.ID].inFlight && w.pushIsReadInPlace(m.Shard) {
			w.noteSent(p.ID)
		}
	}
	return append(out, w.readEffect(m))
}

func (w *Worker) readEffect(m wire.Header) core.Effect {
	return core.Effect{Kind: core.Read, Shard: m.Shard, To: w.plan.Shards[m.Shard].Server, Src: m.Part}
}
