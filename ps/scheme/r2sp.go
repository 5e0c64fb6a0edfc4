package scheme

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/policy/terms"
)

// R2SPParams are the keys of an r2sp rule.
type R2SPParams struct {
	SkipAfter   int64   `yaml:"skip_after" min:"0" doc:"in gaps between two workers' slots: how late a worker may be before its turn passes to the next; with 0 a turn never passes, the strict order"`
	Profile     int64   `yaml:"profile" min:"1" doc:"rounds without slots in which the first period is measured, and then the number of turns over which a worker's times are averaged"`
	Delta       float64 `yaml:"delta" min:"0" max:"4" doc:"share of a gap by which a worker may on average be ready earlier or later than planned"`
	DeltaRounds int64   `yaml:"delta_rounds" min:"1" doc:"number of turns in a row in which a worker is off by more than delta, after which the slots are dealt anew"`
	Smoothing   float64 `yaml:"smoothing" min:"0.01" max:"1" doc:"share of the newest turn in the moving average of how much earlier or later than planned a worker is ready"`
}

// gapsMax keeps a time of that many gaps far from overflow. roundsMax rounds are more than any measurement needs.
const (
	gapsMax   = 1 << 20
	roundsMax = 10_000
)

// Check names the key, the value, the limit and the way out.
func (p *R2SPParams) Check() error {
	switch {
	case p.SkipAfter < 0 || p.SkipAfter > gapsMax:
		return fmt.Errorf("skip_after: %d is not within 0 and %d gaps; 3 is the default, 0 never skips", p.SkipAfter, gapsMax)
	case p.Profile < 1 || p.Profile > roundsMax:
		return fmt.Errorf("profile: %d is not within 1 and %d; set the rounds to measure by, or leave it out for 10", p.Profile, roundsMax)
	case !(p.Delta >= 0 && p.Delta <= 4):
		return fmt.Errorf("delta: %v is not within 0 and 4; 0.25 is the default", p.Delta)
	case p.DeltaRounds < 1 || p.DeltaRounds > roundsMax:
		return fmt.Errorf("delta_rounds: %d is not within 1 and %d; 3 is the default", p.DeltaRounds, roundsMax)
	case !(p.Smoothing >= 0.01 && p.Smoothing <= 1):
		return fmt.Errorf("smoothing: %v is not within 0.01 and 1; 0.2 is the default, 1 takes the newest turn alone", p.Smoothing)
	}
	return nil
}

var r2sp = Entry{
	Name: "r2sp",
	Rule: "round robin: a server lets one worker push at a time, in the order of ranks and in evenly spaced " +
		"slots; each push is a commit and its pull is answered at once, while the next worker pushes; the turn of a worker that is late passes",
	Short: "round robin: workers push one at a time, in evenly spaced slots",
	Paper: "R2SP (Chen, Wang, Li, INFOCOM 2019): evenly gapped round robin, from its abstract; gap, slots, weights " +
		"and everything else reconstructed",
	Evidence: "R",
	Use:      "workers of equal speed whose pushes and pulls crowd the servers' links; staleness is N - 1 while nobody misses a turn",
	Scope:    PerServer,
	Fold:     FoldArrival,
	Weight:   "samples / those of all workers",
	Params: func() Params {
		return &R2SPParams{SkipAfter: 3, Profile: 10, Delta: 0.25, DeltaRounds: 3, Smoothing: 0.2}
	},
	LeadMax: func(p Params) (int64, bool) { return 1, p.(*R2SPParams).SkipAfter == 0 },
	Whole:   func(Common, Params) bool { return false },
	Says:    Says{Papers: terms.Cite("chen2019round")},
	New:     newR2SP,
}

// rotation is r2sp: one instance for all shards of a server that are under it. This file has the part about parameters;
// turns.go has the order, the slots and the grants.
//
// The turn belongs to the worker with the smallest key (iterations pushed plus turns missed), and among equal keys to
// the lowest rank. While no worker misses a turn, that is round robin. The order follows from the iterations alone, so
// the servers agree on it without a message. The worker that is first by (iteration, rank) gets its grant everywhere,
// so rotations never wait for each other in a cycle. Rounds are the values of the key.
type rotation struct {
	keys    R2SPParams
	weight  float64       // of one push; 0: by its samples
	servers int           // of the run; a worker pushes to one at a time
	shards  []int32       // ascending
	clocks  []shardClocks // per shard
	workers []turnState

	round   int64 // the largest key that had the turn
	turn    int32 // the worker whose turn it is, NoWorker where no worker takes turns
	granted bool  // turn has the grant: its push is the one in flight
	turnAt  time.Duration
	slots
	epoch  int64         // grants revoked so far; it tells a grant from earlier ones
	skips  int64         // turns that passed because a worker was late
	strays int64         // pushes that landed without the turn
	wakeAt time.Duration // time of the earliest pending alarm; unknown: none
	now    time.Duration // largest At so far
}

// shardClocks are v and the clocks of one shard, as in the gate.
type shardClocks struct {
	clock  []int64 // per worker: iterations that it has pushed or skipped
	parked []int64 // per worker: c of its delayed pull, -1: none; only in the strict order
	v      int64   // smallest clock of the live workers; never decreases
	atMin  int     // live workers with clock <= v
}

// unknown is a time that is not known.
const unknown time.Duration = -1

// turnState is a worker's state in the rotation.
type turnState struct {
	left      bool
	suspended bool  // takes no turns until its next announcement: it missed a turn, or came back
	ready     bool  // has announced the push of iter and has no grant
	iter      int64 // of its last announcement
	missed    int64 // turns missed, which count as taken
	samples   int64 // of its last push, 0: none yet

	readyAt      time.Duration // of the last announcement
	firstReadyAt time.Duration // of the first announcement of that iteration, 0: none yet
	grantAt      time.Duration // of the last grant
	landedAt     time.Duration // of the push under the grant; unknown: it did not land in its turn
	sentAt       time.Duration // when a reply was last sent
	measured     int64         // turns in the averages, at most Profile
	cycle        time.Duration // average from the push to ready again, without waits for grants of other servers
	pull         time.Duration // average from landed to sent
	pushMin      time.Duration // shortest push ever, without its wait for pushes to other servers: as if nothing else used the link

	rank         int64         // among the workers with a slot, -1: it has none
	plannedCycle time.Duration // cycle when the slots were dealt, 0: none yet
	readyDue     time.Duration // when the worker is ready if the slots are kept
	drift        time.Duration // moving average of its lateness
	drifted      int64         // turns in a row with too much drift
}

func newR2SP(env Env, common Common, params Params) (Scheme, error) {
	p := *params.(*R2SPParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("r2sp: %w", err)
	}
	one := env
	one.Shards = env.Shards[:min(1, len(env.Shards))]
	if err := one.check("r2sp"); err != nil {
		return nil, err
	}
	common, err := common.resolve("r2sp", FoldArrival)
	if err != nil {
		return nil, err
	}
	if common.Fold == FoldRank {
		return nil, fmt.Errorf("r2sp: fold: rank waits until an iteration closes, but r2sp commits each push in its turn; use fold: arrival")
	}
	r := &rotation{keys: p, weight: common.Weight, servers: max(1, env.Servers), shards: slices.Clone(env.Shards),
		workers: make([]turnState, env.Workers),
		turn:    NoWorker, round: -1, wakeAt: unknown}
	for w := range r.workers {
		r.workers[w] = turnState{left: env.Clocks != nil && env.Clocks[w] < 0, landedAt: unknown, readyDue: unknown, rank: -1}
	}
	slices.Sort(r.shards)
	for range r.shards {
		s := shardClocks{clock: make([]int64, env.Workers), parked: slices.Repeat([]int64{-1}, env.Workers), v: env.Start}
		for w, c := range env.Clocks {
			s.clock[w] = max(c, 0)
		}
		if low, _ := r.lowest(&s); r.anyLive() {
			s.v = low
		}
		r.recount(&s)
		r.clocks = append(r.clocks, s)
	}
	r.nextTurn()
	return r, nil
}

func (r *rotation) anyLive() bool {
	return slices.ContainsFunc(r.workers, func(w turnState) bool { return !w.left })
}

// Step implements Scheme.
func (r *rotation) Step(ev Event, out []Decision) []Decision {
	k, ok := slices.BinarySearch(r.shards, ev.Shard)
	if !ok || ev.Worker < 0 || int(ev.Worker) >= len(r.workers) {
		r.bug(ev, "another shard's event, or an unknown worker")
	}
	r.now = max(r.now, ev.At)
	switch ev.Kind {
	case Offered:
		return out
	case Pushed:
		return r.pushed(ev, k, out)
	case Wanted:
		return r.wanted(ev, k, out)
	case Ready:
		out = r.announced(ev, out)
	case Sent:
		r.workers[ev.Worker].sentAt = r.now
		return out
	case Alarm:
		if r.wakeAt != unknown && r.now >= r.wakeAt {
			r.wakeAt = unknown
		}
	case Left:
		out = r.leave(ev.Worker, out)
	case Joined:
		r.join(ev.Worker, ev.Iter)
	default:
		r.bug(ev, "no such event")
	}
	return r.runTurns(out)
}

func (r *rotation) bug(ev Event, what string) {
	panic(fmt.Sprintf("scheme: %v: %s; state: %v", ev, what, r))
}

// pushed handles a push of one shard. The next grant goes out before this push is folded, so that the link does not
// wait for the server's arithmetic.
func (r *rotation) pushed(ev Event, k int, out []Decision) []Decision {
	w, s := &r.workers[ev.Worker], &r.clocks[k]
	switch {
	case ev.Iter < s.clock[ev.Worker]:
		r.bug(ev, "iteration already closed for this worker")
	case ev.Parts != 1:
		r.bug(ev, "this scheme takes pushes of exactly 1 part")
	case ev.Owner != ev.Worker:
		r.bug(ev, "this scheme takes no helper's pushes")
	case ev.Samples < 0:
		r.bug(ev, "negative sample count")
	case s.parked[ev.Worker] >= 0:
		r.bug(ev, "pushed while its pull is open")
	}
	before := r.clockOf(ev.Worker)
	old := s.clock[ev.Worker]
	s.clock[ev.Worker] = ev.Iter + 1
	push := Decision{Kind: Drop, Worker: ev.Worker, Shard: ev.Shard, Iter: ev.Iter, Src: SlotPush, Reason: Empty}
	if w.left {
		if ev.Samples > 0 {
			push.Reason = Gone
		}
		return append(out, push)
	}
	if r.clockOf(ev.Worker) > before {
		r.landed(ev.Worker, ev.Iter-before)
		out = r.runTurns(out)
	}
	if ev.Samples == 0 {
		out = append(out, push)
	} else {
		w.samples = ev.Samples
		push.Kind, push.Reason, push.Dst, push.Weight = Fold, NotDropped, SlotPending, 1
		out = append(out, push, Decision{Kind: Commit, Worker: ev.Worker, Shard: ev.Shard, Iter: ev.Iter, Dst: SlotParams, Src: SlotPending,
			Scale: r.share(ev.Samples), Weight: 1 / float64(ev.Samples), Samples: ev.Samples})
	}
	if old <= s.v && ev.Iter >= s.v {
		s.atMin--
	}
	return r.advance(k, out)
}

// share is the weight of a push: its samples over those of the last pushes of all workers in the run. So a round of
// pushes weighs as one step, whatever the batch sizes. A worker that has not pushed yet counts with the samples of this
// push.
func (r *rotation) share(samples int64) float64 {
	if r.weight != 0 {
		return r.weight
	}
	sum := int64(0)
	for i := range r.workers {
		switch w := &r.workers[i]; {
		case w.left:
		case w.samples == 0:
			sum += samples
		default:
			sum += w.samples
		}
	}
	return float64(samples) / float64(sum)
}

func (r *rotation) wanted(ev Event, k int, out []Decision) []Decision {
	s := &r.clocks[k]
	switch {
	case r.workers[ev.Worker].left:
		return out // its Left has overtaken this pull: nobody waits for the reply
	case ev.Iter < 0 || ev.Iter > s.clock[ev.Worker]:
		r.bug(ev, "wants an iteration beyond its pushes")
	case s.parked[ev.Worker] >= 0:
		r.bug(ev, "its pull is already open")
	}
	if r.keys.SkipAfter == 0 && ev.Iter-s.v > 1 { // only a worker that has skipped iterations is so far ahead
		s.parked[ev.Worker] = ev.Iter
		return out
	}
	return append(out, r.reply(ev.Worker, k, ev.Iter))
}

func (r *rotation) reply(w int32, k int, c int64) Decision {
	return Decision{Kind: Reply, Worker: w, Shard: r.shards[k], Iter: max(c, r.clocks[k].clock[w]), Src: SlotParams}
}

// leave passes the turn of a worker that has left at once; its open pulls vanish.
func (r *rotation) leave(w int32, out []Decision) []Decision {
	if r.workers[w].left {
		return out
	}
	r.workers[w].left, r.workers[w].suspended, r.workers[w].ready = true, false, false
	r.redeal = true
	if r.turn == w {
		r.turn, r.granted = NoWorker, false
	}
	for k := range r.clocks {
		s := &r.clocks[k]
		s.parked[w] = -1
		if s.clock[w] <= s.v {
			s.atMin--
		}
		out = r.advance(k, out)
	}
	return out
}

// join starts a worker at v, or at its own clock where its earlier pushes reach further. The worker takes turns from
// its first announcement on, so nobody waits while it fetches the parameters.
func (r *rotation) join(w int32, clock int64) {
	if !r.workers[w].left {
		return
	}
	r.workers[w] = turnState{suspended: true, landedAt: unknown, readyDue: unknown, rank: -1}
	for k := range r.clocks {
		s := &r.clocks[k]
		s.clock[w] = max(s.v, s.clock[w], clock)
		if s.clock[w] == s.v {
			s.atMin++
		}
		if s.atMin == 0 { // it is the only worker, and further than the others were
			s.v, _ = r.lowest(s)
			r.recount(s)
		}
	}
}

// advance moves v of a shard to the smallest live clock, and answers the delayed pulls that this releases, in order of
// rank. Scanning the clocks only when v can move costs N steps per round.
func (r *rotation) advance(k int, out []Decision) []Decision {
	s := &r.clocks[k]
	if s.atMin > 0 {
		return out
	}
	low, high := r.lowest(s)
	if !r.anyLive() {
		low = high
	}
	s.v = max(s.v, low)
	r.recount(s)
	for w, c := range s.parked {
		if c >= 0 && c-s.v <= 1 {
			s.parked[w] = -1
			out = append(out, r.reply(int32(w), k, c))
		}
	}
	return out
}

// lowest is the smallest clock of the live workers, and the largest clock of all.
func (r *rotation) lowest(s *shardClocks) (low, high int64) {
	low = -1
	for w, c := range s.clock {
		high = max(high, c)
		if !r.workers[w].left && (low < 0 || c < low) {
			low = c
		}
	}
	return low, high
}

func (r *rotation) recount(s *shardClocks) {
	s.atMin = 0
	for w, c := range s.clock {
		if !r.workers[w].left && c <= s.v {
			s.atMin++
		}
	}
}
