package servernode

import (
	"math"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/local"
)

// Where workers take steps of their own between two exchanges (internal/policy/local), the lead shard's server tells each worker with
// its reply what the worker cannot know: how many samples are in the newest version, the mean loss of the newest version, and how
// fast the worker is beside the fastest. No message is added. The server knows a worker's speed by the time between a
// reply and the push that follows it.
//
// What a commit makes of the pushes is up to the policy, too (local.Weigh): schemes weigh pushes by their samples, and where a push is a
// change that must count otherwise, the commit undoes that.

// Locally says that workers take steps of their own.
type Locally struct {
	Weigh local.Weigh
	// Clock is the number of exchanges that a shard has had when its workers compute an iteration; nil: the iteration itself.
	Clock func(shard int32, iter int64) int64
}

// tally is what the server of the lead shard tells of.
type tally struct {
	lossSum     float64   // of the pushes folded since the last commit
	lossSamples int64     // of the same
	loss        float64   // mean of the newest version; NaN: unknown
	repliedAt   []int64   // per worker: when its last reply left, in nanoseconds; -1: there was none
	speed       []float64 // per worker: samples per nanosecond; 0: unknown, or it has left
	fastest     int32     // the worker with the largest speed
}

func newTally(workers int) *tally {
	t := &tally{loss: math.NaN(), repliedAt: make([]int64, workers), speed: make([]float64, workers)}
	for w := range t.repliedAt {
		t.repliedAt[w] = -1
	}
	return t
}

// makeTally makes the tally of the lead shard. Where no worker takes steps of its own there is none.
func (s *Server) makeTally() {
	if lead := s.shards[0]; lead != nil && s.locally != nil {
		lead.tally = newTally(s.workers)
	}
}

// folded counts a push of the next version.
func (t *tally) folded(m *wire.Header) {
	if t != nil {
		t.lossSum, t.lossSamples = t.lossSum+m.Loss, t.lossSamples+m.Samples
	}
}

// committed ends a version.
func (t *tally) committed() {
	if t != nil && t.lossSamples > 0 {
		t.loss, t.lossSum, t.lossSamples = t.lossSum/float64(t.lossSamples), 0, 0
	}
}

// landed measures the speed of a worker, as a mean that gives the newest value the weight 1/2.
func (t *tally) landed(m *wire.Header, at int64) {
	if t == nil || t.repliedAt[m.Worker] < 0 || at <= t.repliedAt[m.Worker] {
		return
	}
	speed := float64(m.Samples) / float64(at-t.repliedAt[m.Worker])
	if old := t.speed[m.Worker]; old > 0 {
		speed = (old + speed) / 2
	}
	t.repliedAt[m.Worker] = -1
	t.setSpeed(m.Worker, speed)
}

// setSpeed sets the speed of a worker. It looks through all workers only if the fastest one has become slower: every
// reply asks for that one.
func (t *tally) setSpeed(w int32, speed float64) {
	if t == nil {
		return
	}
	was := t.speed[t.fastest]
	switch t.speed[w] = speed; {
	case speed >= was:
		t.fastest = w
	case w == t.fastest:
		for i, v := range t.speed {
			if v > t.speed[t.fastest] {
				t.fastest = int32(i)
			}
		}
	}
}

// tell writes to a reply of the lead shard what its worker cannot know.
func (s *Server) tell(sh *ownShard, m *wire.Header) {
	t := sh.tally
	if t == nil || m.Kind != wire.Reply {
		return
	}
	t.repliedAt[m.Worker] = int64(s.now)
	p := wire.Progress{Samples: sh.versions.samples, Loss: t.loss, Share: 1}
	if own := t.speed[m.Worker]; own > 0 {
		p.Share = own / t.speed[t.fastest]
	}
	p.WriteTo(m)
}

// weigh makes of the scheme's weight, 1/samples, that of the policy; n is the number of pushes in the commit.
func (s *Server) weigh(sh *ownShard, weight float64, samples, n int64) float64 {
	if s.locally == nil || s.plan.Shards[sh.id].Stat {
		return weight
	}
	switch s.locally.Weigh {
	case local.Equally:
		return weight * float64(samples) / float64(max(1, n))
	case local.Whole:
		return weight * float64(samples)
	case local.BySamples:
	}
	return weight
}

// ClocksOf are the clocks of a shard when its workers are at these iterations.
func (l *Locally) ClocksOf(id int32, iters []int64) []int64 {
	if l == nil || l.Clock == nil {
		return iters
	}
	clocks := make([]int64, len(iters))
	for w, c := range iters {
		clocks[w] = c
		if c >= 0 && c < core.GoneClock {
			clocks[w] = l.Clock(id, c)
		}
	}
	return clocks
}

// ClockOf is the clock of a shard before that iteration.
func (l *Locally) ClockOf(id int32, iter int64) int64 {
	if l == nil || l.Clock == nil {
		return iter
	}
	return l.Clock(id, iter)
}
