package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// copier is a dumb Work: it computes whole batches of a list of owners, until every shard has replied. It keeps some of them, and pushes
// them later.
type copier struct {
	d      *workDriver
	me     int32
	todo   []core.Task // of this iteration
	closed bool
}

func (p *copier) next(out []core.Order) []core.Order {
	if len(p.todo) == 0 || p.closed {
		return out
	}
	t := p.todo[0]
	p.todo = p.todo[1:]
	return append(out, core.Order{Kind: core.Assign, Task: t})
}

// plan lists the tasks of an iteration.
func (p *copier) plan(iter int64) {
	p.todo, p.closed = nil, false
	var kept []core.Task
	for k, owner := range p.d.owners[p.me] {
		t := core.Task{Owner: owner, Iter: iter, Parts: 1, Grain: 1}
		if k < len(p.d.owners[p.me])-1 && p.d.r.IntN(3) == 0 {
			t.Keep = core.Kept
			p.d.kept++
			p.todo = append(p.todo, t)
			t.Keep = core.Again
			kept = append(kept, t)
			continue
		}
		p.todo = append(append(p.todo, t), kept...)
		kept = nil
	}
}

func (p *copier) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	switch ev.Kind {
	case core.Starting:
		p.plan(ev.Task.Iter)
		out = p.next(out)
		// its own again is for later
		for p.d.early && len(p.todo) > 0 && !slices.ContainsFunc(p.todo, func(t core.Task) bool { return t.Owner == p.me }) {
			out = p.next(out)
		}
	case core.Computed:
		if ev.Task.Owner != p.me {
			p.d.helped++
		}
		return p.next(out)
	case core.Answered:
		p.closed = true
		for _, j := range p.d.owners[p.me] {
			for range 2 { // one to keep, and one to push again
				out = append(out, core.Order{Kind: core.CancelWork, Task: core.Task{Owner: j, Iter: ev.Task.Iter}})
			}
		}
	}
	return out
}

// aheadRun is a cluster whose workers pull ahead and compute for each other.
type aheadRun struct {
	*cluster
	d             *workDriver
	quorum        int // of owners
	surplus, late int64
	unpushed      int
}

func genAhead(t *rapid.T) *aheadRun {
	workers := rapid.IntRange(1, 5).Draw(t, "workers")
	load := rapid.IntRange(1, workers).Draw(t, "load")
	quorum := rapid.IntRange(1, workers).Draw(t, "quorum")
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 0, N: 3}, {Name: "b", Layer: 1, N: 3},
		{Name: "c", Layer: 2, N: 2}}, shard.Options{Slice: "layer", MaxBytes: 8, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	drop := rule{name: "drop", params: &scheme.DropParams{Required: int64(quorum), Contributors: "shard"}}
	c := newCluster(plan, workers, []rule{drop}, Budget{Updates: int64(rapid.IntRange(1, 6).Draw(t, "updates"))}, 0)
	c.pick = r.IntN
	c.overtake = rapid.Bool().Draw(t, "overtake")
	c.deliverTwice = func() bool { return r.IntN(8) == 0 }
	d := &workDriver{r: r, workers: workers, batch: 3, doing: map[*workernode.Worker]*doing{}, pushed: map[pushName][]string{},
		slots: map[[3]int32][]string{}, cut: map[string]bool{}, early: rapid.Bool().Draw(t, "early")}
	for w := range workers {
		all := r.Perm(workers)
		all = slices.DeleteFunc(all, func(j int) bool { return j == w })
		of := []int32{int32(w)}
		for _, j := range all[:load-1] {
			of = append(of, int32(j))
		}
		d.owners = append(d.owners, of)
	}
	c.work = d
	for _, s := range c.servers {
		for _, id := range s.owned {
			s.shards[id].makeParts(2)
		}
		s.makeAhead(&core.Ahead{Owners: d.owners})
	}
	for w := range c.workers {
		c.workers[w] = c.prepared(workernode.New(int32(w), c.plan, c.policy(), 0))
	}
	return &aheadRun{cluster: c, d: d, quorum: quorum}
}

// check counts, and compares what was folded with what may have been.
func (a *aheadRun) check(t *rapid.T) {
	for i := range a.plan.Shards {
		st := a.servers[a.plan.Shards[i].Server].Shard(int32(i))
		a.surplus += st.Stats.DroppedFor[scheme.Surplus]
		a.late += st.Stats.DroppedFor[scheme.Late]
		for _, version := range a.versions[int32(i)] {
			pushes := strings.Fields(version)
			if len(pushes) > a.quorum || len(pushes) == 0 {
				t.Fatalf("shard %d: %d pushes in a version, want 1 to %d: %s", i, len(pushes), a.quorum, version)
			}
			first := ""
			for _, push := range pushes {
				_, iter, _ := strings.Cut(push, ".")
				if first == "" {
					first = iter
				}
				if iter != first || strings.Count(version, push) != 1 {
					t.Fatalf("shard %d: a version of %s", i, version)
				}
			}
		}
	}
	for _, list := range a.d.pushed {
		if len(list) < int(a.d.batch) {
			a.unpushed++
		}
	}
}

// Workers compute each other's batches, in any order of events. An iteration takes the first copy of each owner's,
// whole, and as many owners as required. Workers are told when an iteration is closed, and cancel what they do.
// Nobody waits for ever.
func TestTheFirstCopiesCloseAnIteration(t *testing.T) {
	var all aheadRun
	helped, cancelled, kept := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		a := genAhead(t)
		a.reads = a.readsOneIteration
		if err := a.run(100_000); err != nil {
			t.Fatal(err)
		}
		a.check(t)
		for i := range a.plan.Shards {
			for iter, lead := range a.lead[int32(i)] {
				if lead > 0 {
					t.Fatalf("shard %d lets a worker into iteration %d, which is not open yet", i, iter)
				}
			}
			for _, version := range a.versions[int32(i)] {
				if n := len(strings.Fields(version)); n < a.quorum {
					t.Fatalf("shard %d: %d pushes in a version, want %d", i, n, a.quorum)
				}
			}
		}
		all.surplus, all.late, all.unpushed = all.surplus+a.surplus, all.late+a.late, all.unpushed+a.unpushed
		helped, cancelled, kept = helped+a.d.helped, cancelled+a.d.cancelled, kept+a.d.kept
	})
	if min(all.surplus, all.late, int64(all.unpushed), int64(helped), int64(cancelled), int64(kept)) == 0 {
		t.Errorf("%d copies were surplus and %d late, %d were cut short, %d batches of others computed, %d cancelled, %d "+
			"kept", all.surplus, all.late, all.unpushed, helped, cancelled, kept)
	}
}

// readsOneIteration checks that all parameters of an iteration are those which the iteration before has made.
func (a *aheadRun) readsOneIteration(w *workernode.Worker, iter int64) error {
	for _, p := range a.plan.Pieces {
		versions := strings.Split(strings.TrimSuffix(a.arena[[2]int32{w.Me(), p.ID}], " |"), "|")
		if last := strings.Fields(versions[len(versions)-1]); iter > 0 &&
			(len(last) == 0 || !strings.HasSuffix(last[0], fmt.Sprintf(".%d", iter-1))) {
			return fmt.Errorf("w%d computes iteration %d, and piece %d is that of%s", w.Me(), iter, p.ID, versions[len(versions)-1])
		}
	}
	return nil
}

// The same when workers die, and come back.
func TestTheFirstCopiesCloseAnIterationWhenWorkersDie(t *testing.T) {
	back := 0
	rapid.Check(t, func(t *rapid.T) {
		a := genAhead(t)
		n := a.killsAndRevives(a.d.r)
		if err := a.run(100_000); err != nil {
			t.Fatal(err)
		}
		a.check(t)
		back += *n
	})
	if back < 10 {
		t.Errorf("only %d workers came back", back)
	}
}

// aheadServer drives one server of workers that pull ahead.
type aheadServer struct {
	t       *testing.T
	s       *Server
	sh      *ownShard
	replies []string
}

func newAheadServer(t *testing.T, owners [][]int32) *aheadServer {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Plan: plan, Workers: len(owners), Ahead: &core.Ahead{Owners: owners},
		Schemes: map[int32]inturn.ShardScheme{0: mustScheme(rule{name: "drop"}, []int32{0}, 0, len(owners), false)}})
	return &aheadServer{t: t, s: s, sh: s.shards[0]}
}

func (a *aheadServer) step(in core.Input) {
	for _, e := range a.s.Step(in, nil) {
		if e.Kind == core.Reply {
			a.replies = append(a.replies, fmt.Sprintf("w%d@%d", e.To, e.Msg.Iter))
			a.s.Step(core.Input{Kind: core.ReplySent, Shard: e.Shard, Buf: e.Src, Worker: e.To}, nil)
		}
	}
	if err := a.s.Check(); err != nil {
		a.t.Fatal(err)
	}
}

func (a *aheadServer) tell(kind wire.Kind, w int32, iter, life int64) {
	a.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: kind, Worker: w, Iter: iter, Clock: life}})
}

func (a *aheadServer) push(by, owner int32, iter int64) {
	a.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Worker: by, Owner: owner, Parts: 1, Iter: iter, Samples: 1}})
	a.step(core.Input{Kind: core.PieceLanded, Worker: by, Slot: a.sh.peers[by].landing.slot})
}

func (a *aheadServer) expect(want ...string) {
	a.t.Helper()
	if !slices.Equal(a.replies, want) {
		a.t.Errorf("replies %v, want %v", a.replies, want)
	}
	a.replies = nil
}

// A batch of a worker that has left counts as long as another computes it; then it is no longer waited for.
func TestAnIterationNeedsWhatSomebodyComputes(t *testing.T) {
	a := newAheadServer(t, [][]int32{{0, 1}, {1, 2}, {2, 0}})
	for w := range int32(3) {
		a.tell(wire.Pull, w, 0, 0)
		a.tell(wire.Pull, w, 1, 0)
	}
	a.expect("w0@0", "w1@0", "w2@0")
	a.tell(wire.Left, 1, 0, 0)
	a.push(0, 0, 0)
	a.push(2, 2, 0)
	a.push(2, 0, 0)
	a.expect() // batch 1 is missing, which worker 0 computes, too
	a.push(0, 1, 0)
	a.expect("w0@1", "w2@1")
	a.tell(wire.Pull, 2, 2, 0)
	a.push(2, 2, 1)
	a.push(2, 0, 1)
	a.expect()
	a.tell(wire.Left, 0, 0, 0)
	a.expect("w2@2") // nobody computes batch 1 any more
	if n := a.sh.stats.DroppedFor[scheme.Surplus]; n != 1 || a.sh.versions.version != 2 || a.sh.versions.samples != 5 {
		t.Errorf("%d copies dropped, %d versions of %d samples, want 1, 2 and 5", n, a.sh.versions.version, a.sh.versions.samples)
	}
	a.tell(wire.Joined, 1, 1, 1)
	a.expect("w1@2")
	a.tell(wire.Pull, 1, 3, 0)
	a.push(2, 2, 2)
	a.push(2, 0, 2)
	a.expect() // worker 1 is back, and so is its batch
	a.push(1, 1, 2)
	a.expect("w1@3")
}

// A worker whose pull is late computes the iteration that is open, even if another has pushed its batch of that one.
func TestALatePullLeadsIntoTheOpenIteration(t *testing.T) {
	a := newAheadServer(t, [][]int32{{0, 1}, {1, 0}})
	a.push(1, 1, 0)
	a.push(1, 0, 0)
	a.push(1, 0, 1)
	a.tell(wire.Pull, 0, 1, 0)
	a.expect("w0@1")
	a.tell(wire.Pull, 0, 2, 0)
	a.push(0, 0, 1)
	a.expect()
	a.push(0, 1, 1)
	a.expect("w0@2")
}
