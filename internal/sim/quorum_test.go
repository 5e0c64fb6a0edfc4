package sim_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
	"fluentps/ps/scheme"
)

// quorumWatch counts, from the events of schemes alone, whose pushes each version of a quorum is made of.
type quorumWatch struct {
	workers, required int
	untils            []int64 // clocks of changes
	between           bool    // the scheme between two changes is another one
	shards            map[int32]*quorumShard
	open              map[[2]int32]bool          // pulls that wait, by worker and shard
	answered          map[[2]int32]time.Duration // when the last one was answered
	slack             time.Duration              // longest way of a message
	said              int                        // answers of workers that wait
	versions          int
	fewer             int // versions of fewer than K workers, for a stated reason
	problem           error
}

// quorumShard is one shard with quorum.
type quorumShard struct {
	version int64
	arrived map[int32]bool          // pushed something that was computed on the newest version
	waits   map[int32]bool          // said that they wait elsewhere, and push nothing here meanwhile
	left    map[int32]time.Duration // since when
	grace   bool
	phase   int // changes so far
	clock   map[int32]int64
}

func newQuorumWatch(workers, required int, untils ...int64) *quorumWatch {
	return &quorumWatch{workers: workers, required: required, untils: untils, shards: map[int32]*quorumShard{},
		open: map[[2]int32]bool{}, answered: map[[2]int32]time.Duration{}}
}

// see takes an event of a shard with quorum.
func (q *quorumWatch) see(ev scheme.Event, decisions []scheme.Decision) {
	for _, d := range decisions {
		if d.Kind == scheme.Reply {
			delete(q.open, [2]int32{d.Worker, d.Shard})
			q.answered[[2]int32{d.Worker, d.Shard}] = ev.At
		}
	}
	s := q.shards[ev.Shard]
	if s == nil {
		s = &quorumShard{arrived: map[int32]bool{}, waits: map[int32]bool{}, left: map[int32]time.Duration{}, clock: map[int32]int64{}}
		q.shards[ev.Shard] = s
	}
	switch w := ev.Worker; ev.Kind {
	case scheme.Pushed:
		s.clock[w] = ev.Iter + 1
		delete(s.waits, w)
		if ev.Seen == s.version {
			s.arrived[w] = true
		}
	case scheme.Left:
		s.left[w] = ev.At
	case scheme.Joined:
		delete(s.left, w)
		delete(s.waits, w)
	case scheme.WaitsElsewhere:
		s.waits[w] = true
		q.checkWaits(s, ev)
	case scheme.Wanted:
		if !slices.ContainsFunc(decisions, func(d scheme.Decision) bool { return d.Kind == scheme.Reply && d.Worker == w }) {
			q.open[[2]int32{w, ev.Shard}] = true
		}
	case scheme.WaitedElsewhere:
		delete(s.waits, w)
	}
	for _, d := range decisions {
		if d.Kind == scheme.WakeAt || d.Kind == scheme.Commit && !s.grace {
			q.begins(s, ev)
		}
		if s.grace = d.Kind == scheme.WakeAt || s.grace && d.Kind != scheme.Commit; d.Kind == scheme.Commit {
			s.version++
			clear(s.arrived)
			clear(s.waits)
		}
	}
	if len(s.left) == q.workers && s.phase < len(q.untils) { // the shard changes its scheme: the old one heard that all left
		for w, at := range s.left {
			if at == ev.At && s.clock[w] == q.untils[s.phase] {
				delete(s.left, w)
			}
		}
		if len(s.left) < q.workers {
			s.phase++
			clear(s.arrived)
			clear(s.waits)
		}
	}
}

// checkWaits judges an answer: a pull of the worker waits at another shard, or did so just now, or it waits at a change.
func (q *quorumWatch) checkWaits(s *quorumShard, ev scheme.Event) {
	q.said++
	for other := range q.shards {
		key := [2]int32{ev.Worker, other}
		if at, ok := q.answered[key]; other != ev.Shard && (q.open[key] || ok && ev.At-at <= q.slack) {
			return
		}
	}
	if !slices.Contains(q.untils, s.clock[ev.Worker]) && q.problem == nil {
		q.problem = fmt.Errorf("at %v w%d said to shard %d that it waits elsewhere, with clock %d, and no other shard "+
			"holds it", ev.At, ev.Worker, ev.Shard, s.clock[ev.Worker])
	}
}

// begins judges a version when its grace begins; a worker that comes later is not waited for.
func (q *quorumWatch) begins(s *quorumShard, ev scheme.Event) {
	q.versions++
	live, silent := 0, 0
	for w := range int32(q.workers) {
		if _, gone := s.left[w]; gone {
			continue
		}
		if live++; !s.arrived[w] && !s.waits[w] {
			silent++
		}
	}
	if live > 0 && !(s.phase == 1 && q.between) && len(s.arrived) < min(q.required, live) {
		if q.fewer++; silent > 0 && q.problem == nil {
			q.problem = fmt.Errorf("at %v shard %d made version %d of the pushes of %d workers, fewer than %d, and %d of %d "+
				"workers neither arrived nor said that they wait elsewhere",
				ev.At, ev.Shard, s.version+1, len(s.arrived), q.required, silent, live)
		}
	}
}

// TestQuorumVersionsAreOfKWorkers: with one shard and one scheme no worker can wait elsewhere. So every version but
// the last is of K workers or more, however often the slowest worker, which is never held, pushes meanwhile.
func TestQuorumVersionsAreOfKWorkers(t *testing.T) {
	q := newQuorumWatch(5, 4)
	o := simtest.Setting{Workers: 5, Servers: 1, Seed: 1, Iterations: 250, Scheme: "quorum, required: 4, grace_max: 0",
		Set: []string{`faults=[{worker: "*", slow: {kind: two_state, factor: 8}}]`}}.Options(t)
	o.Decided = q.see
	if _, err := check.Run(o); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d versions are of fewer than 4 workers", q.fewer, q.versions)
	if q.problem != nil || q.fewer > 0 || q.versions < 100 {
		t.Errorf("%d of %d versions are of fewer than 4 workers: %v", q.fewer, q.versions, q.problem)
	}
}

// TestQuorumHasItsWorkers: over many runs with several shards, changes of scheme, lost workers and workers that come
// back, each version of a quorum is of the pushes of K different workers, or of all in the run, or all others wait
// elsewhere, as they say and as the other shards show. The runs end: nobody waits for ever. FLUENTPS_TEST_SIM_SEEDS=10000
// tries more.
func TestQuorumHasItsWorkers(t *testing.T) {
	first, n := 0, 300
	if os.Getenv("FLUENTPS_TEST_SIM_SEEDS") != "" {
		first, n = simtest.SeedsFrom(t)
	}
	versions, fewer, said, lost, joined := 0, 0, 0, 0, 0
	for seed := first; seed < first+n; seed++ {
		q, o := quorumRun(t, uint64(seed))
		r, err := check.Run(o)
		if err == nil {
			err = q.problem
		}
		if err != nil {
			t.Fatalf("FLUENTPS_TEST_SIM_FIRST=%d FLUENTPS_TEST_SIM_SEEDS=1 go test ./internal/sim -run TestQuorumHasItsWorkers: %v", seed, err)
		}
		versions, fewer, said, lost, joined = versions+q.versions, fewer+q.fewer, said+q.said, lost+r.Lost, joined+r.Joined
	}
	t.Logf("figure: %d seeds, %d versions; %d are of fewer than K workers, all while the others waited elsewhere (%d "+
		"answers); %d workers lost, %d back", n, versions, fewer, said, lost, joined)
	if n >= 300 && (fewer == 0 || versions < 20*n || lost < n/10 || joined < n/20) {
		t.Errorf("%d versions, %d of them of fewer workers, %d lost, %d back: the draw is too narrow", versions, fewer, lost, joined)
	}
}

// quorumRun draws a run.
func quorumRun(t *testing.T, seed uint64) (*quorumWatch, sim.Options) {
	r := rand.New(rand.NewPCG(seed, 38))
	workers, servers := 3+r.IntN(5), 1+r.IntN(3)
	required := 1 + r.IntN(workers)
	rule := fmt.Sprintf("quorum, required: %d, mad: %g, grace_max: %g", required, []float64{0, 3}[r.IntN(2)],
		[]float64{0, 0, 0.5, 2}[r.IntN(4)])
	c := simtest.Setting{Workers: workers, Servers: servers, Seed: seed, Iterations: 60, Scheme: rule}
	c.Set = []string{fmt.Sprintf("simulate.network.latency=%dus", []int{0, 50, 2000}[r.IntN(3)])}
	var untils []int64
	between := false
	if r.IntN(2) == 0 { // changes of scheme
		at, second := int64(5+r.IntN(20)), []string{rule, "bsp", "asp", "ssp, staleness: 2"}[r.IntN(4)]
		untils, between = []int64{at, at + 7}, second != rule
		c.Set = append(c.Set, fmt.Sprintf(`sync=[{match: "*", schemes: [{scheme: %s, until: %d}, {scheme: %s, until: %d}, {scheme: %s}]}]`,
			rule, at, second, at+7, rule))
	}
	var faults []string
	for range r.IntN(3) {
		from := r.IntN(20)
		faults = append(faults,
			fmt.Sprintf("{worker: %d, slow: {factor: %d, from: %d, until: %d}}", r.IntN(workers), 2+r.IntN(20), from, from+1+r.IntN(10)))
	}
	faults = append(faults, `{worker: "*", slow: {`+
		[]string{"kind: two_state, factor: 8", "kind: exponential, factor: 2", "kind: normal, factor: 1.5, spread: 0.3"}[r.IntN(3)]+"}}")
	c.Set = append(c.Set, "faults=["+strings.Join(faults, ", ")+"]")
	c.Bytes = 4 * int64(servers) * int64(1+r.IntN(3))
	c.Set = append(c.Set, fmt.Sprintf("shards={parts: %d}", 1+r.IntN(2)))
	o := c.Options(t)
	when := func() time.Duration { return time.Duration(r.Int64N(int64(600 * time.Millisecond))) }
	for range r.IntN(3) / 2 {
		o.Losses = append(o.Losses, sim.Loss{Worker: r.IntN(workers), At: when()})
	}
	for _, l := range o.Losses {
		if r.IntN(2) == 0 {
			o.Joins = append(o.Joins, sim.Join{Worker: l.Worker, At: l.At + when()})
		}
	}
	q := newQuorumWatch(workers, required, untils...)
	q.between, q.slack = between, 3*time.Duration(o.Config.Simulate.Network.Latency)
	o.Decided = q.see
	return q, o
}
