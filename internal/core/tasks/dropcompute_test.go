package tasks

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

var updateTimed = flag.Bool("update-timed", false, "write the golden of dropcompute anew")

// party drives workers of dropcompute in step, as under bsp: an iteration begins when all have computed the one before. Messages arrive
// when the test wants. Each worker has a clock of its own.
type party struct {
	r        *rand.Rand
	spec     work.Spec
	batches  []int
	policies []core.Work
	gone     []bool
	clock    []time.Duration // what a worker's clock shows at the start
	now      time.Duration
	talk     time.Duration // time between two iterations
	mail     []letter
	used     [][]time.Duration                  // by worker: Until of each of its iterations; -1: not computed
	ends     [][][]time.Duration                // by worker and iteration: ends of the steps
	sent     map[int32]int                      // messages, by sender
	draw     func(w, iter, k int) time.Duration // how long a step computes
	log      *strings.Builder
}

type letter struct {
	to  int32
	msg wire.Header
}

func newParty(r *rand.Rand, spec work.Spec, batches []int) *party {
	n := len(batches)
	p := &party{r: r, spec: spec, batches: batches, gone: make([]bool, n), clock: make([]time.Duration, n), used: make([][]time.Duration, n),
		ends: make([][][]time.Duration, n), sent: map[int32]int{}, talk: 3 * time.Millisecond}
	for w := range batches {
		p.policies = append(p.policies, New(spec, Env{Me: int32(w), Batches: batches}))
		p.clock[w] = time.Duration(r.Int64N(1e12))
	}
	p.draw = func(w, iter, k int) time.Duration {
		return time.Duration(1e6 * math.Exp(r.NormFloat64()/2))
	}
	return p
}

// tell tells a worker of an event, and returns the task that it assigns.
func (p *party) tell(w int, ev core.WorkEvent) (assigned core.Task) {
	ev.At = p.now + p.clock[w]
	for _, o := range p.policies[w].Step(ev, nil) {
		switch o.Kind {
		case core.Assign:
			assigned = o.Task
		case core.Tell:
			if o.To == int32(w) {
				panic("a worker tells itself")
			}
			o.Msg.Worker = int32(w)
			p.sent[int32(w)]++
			p.mail = append(p.mail, letter{o.To, o.Msg})
			if p.log != nil {
				fmt.Fprintf(p.log, "  %d -> %d %s\n", w, o.To, textOf(&o.Msg))
			}
		default:
			panic(fmt.Sprintf("dropcompute orders %+v", o))
		}
	}
	return assigned
}

func textOf(m *wire.Header) string {
	switch m.Flags {
	case marks:
		return fmt.Sprintf("marks of row %d from %d: %d %d %d %d %d", m.Iter, m.Part, m.Version, m.Samples, m.Correct, m.Blocked, m.Clock)
	case chosen:
		return fmt.Sprintf("chosen by %d: %v from iteration %d on", m.Owner, time.Duration(m.Blocked), m.Iter)
	case hello:
		return fmt.Sprintf("hello, unknown %d", m.Part)
	}
	return fmt.Sprint(*m)
}

// deliver delivers a letter, or an earlier one between the same two.
func (p *party) deliver(i int) {
	i = slices.IndexFunc(p.mail, func(l letter) bool { return l.to == p.mail[i].to && l.msg.Worker == p.mail[i].msg.Worker })
	l := p.mail[i]
	p.mail = slices.Delete(p.mail, i, i+1)
	if p.gone[l.to] {
		return
	}
	if l.msg.Flags == wire.Gone {
		p.tell(int(l.to), core.WorkEvent{Kind: core.Gone, Task: core.Task{Owner: l.msg.Worker}})
		return
	}
	p.tell(int(l.to), core.WorkEvent{Kind: core.Came, Msg: l.msg})
}

func (p *party) deliverAll() {
	for len(p.mail) > 0 {
		p.deliver(0)
	}
}

// iterate drives all workers through an iteration. between is called before each step.
func (p *party) iterate(iter int64, between func()) {
	longest := time.Duration(0)
	start := p.now
	for w := range p.policies {
		for len(p.used[w]) <= int(iter) {
			p.used[w], p.ends[w] = append(p.used[w], -1), append(p.ends[w], nil)
		}
		if p.gone[w] {
			continue
		}
		p.now = start
		own := core.Task{Owner: int32(w), Parts: 1, Iter: iter}
		if own = p.tell(w, core.WorkEvent{Kind: core.Starting, Task: own}); own.Owner != int32(w) || own.Iter != iter ||
			own.Parts != 1 || own.From != 0 || own.To != 0 || own.Grain < 1 {
			panic(fmt.Sprintf("assigned %+v", own))
		}
		p.used[w][iter] = own.Until
		for k, n := 0, int32(0); n < int32(p.batches[w]); k++ {
			between()
			if p.gone[w] {
				break
			}
			if own.Until > 0 && k > 0 && p.now-start > own.Until {
				break
			}
			n = min(n+own.Grain, int32(p.batches[w]))
			p.tell(w, core.WorkEvent{Kind: core.Stepped, Task: own, Samples: int64(n)})
			p.now += p.draw(w, int(iter), k)
			p.ends[w][iter] = append(p.ends[w][iter], p.now-start)
		}
		if !p.gone[w] {
			p.tell(w, core.WorkEvent{Kind: core.Fixed, Task: own})
			p.tell(w, core.WorkEvent{Kind: core.Computed, Task: own})
		}
		longest = max(longest, p.now-start)
	}
	p.now = start + longest + p.talk
}

// lose ends a worker: the others hear of it.
func (p *party) lose(w int) {
	p.gone[w] = true
	p.tell(w, core.WorkEvent{Kind: core.Leaves})
	for o := range p.policies {
		if o != w {
			p.mail = append(p.mail, letter{int32(o), wire.Header{Worker: int32(w), Flags: wire.Gone}})
		}
	}
}

func of(p core.Work) *dropCompute { return p.(*dropCompute) }

// Three workers of different batches measure three iterations, the first of which does not count, and choose tau. The chooser
// leaves afterwards, and another worker comes in its place.
func TestScriptOfDropCompute(t *testing.T) {
	spec := work.Spec{Policy: "dropcompute", Profile: 3, Micro: 4}
	p := newParty(rand.New(rand.NewPCG(3, 1)), spec, []int{12, 12, 14})
	p.log = &strings.Builder{}
	p.log.WriteString("Three workers with 12, 12 and 14 samples in steps of 4 choose tau after 3 iterations; messages " +
		"arrive at the end of an iteration.\n")
	for iter := range int64(9) {
		if iter == 7 {
			p.log.WriteString("worker 0 is lost\n")
			p.lose(0)
			p.deliverAll()
		}
		if iter == 8 {
			p.log.WriteString("worker 0 comes back\n")
			p.policies[0], p.gone[0] = New(spec, Env{Me: 0, Batches: p.batches}), false
		}
		fmt.Fprintf(p.log, "iteration %d\n", iter)
		p.iterate(iter, func() {})
		for w := range p.policies {
			if p.used[w][iter] >= 0 {
				fmt.Fprintf(p.log, "  worker %d, limit %v: %v\n", w, p.used[w][iter], p.ends[w][iter])
			}
		}
		p.deliverAll()
	}
	const file = "testdata/dropcompute.txt"
	if *updateTimed {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(p.log.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if p.log.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s\ngo test ./internal/core/tasks -update-timed writes it anew", p.log, want)
	}
}

// plainTau is the second implementation: of all that was computed in some iterations, by the formula alone.
func plainTau(p *party, iters []int, talk time.Duration) (tau time.Duration, best float64) {
	iters = middle(p, iters)
	var ends []time.Duration
	for w := range p.batches {
		for _, i := range iters {
			all := p.ends[w][i]
			ends = append(ends, all[:len(all)-1]...)
		}
	}
	slices.Sort(ends)
	for _, t := range ends {
		best = max(best, plainSpeedUp(p, iters, float64(talk), t-1))
	}
	for _, t := range ends { // the last one that is nearly as good
		if plainSpeedUp(p, iters, float64(talk), t-1) >= 0.99*best {
			tau = t - 1
		}
	}
	if 0.99*best <= 1 {
		return 0, 1
	}
	return tau, best
}

// middle leaves out a tenth of the iterations, rounded down, at both ends of the order of their longest times.
func middle(p *party, iters []int) []int {
	took := func(i int) (d time.Duration) {
		for w := range p.ends {
			d = max(d, slices.Max(p.ends[w][i]))
		}
		return d
	}
	for range len(iters) / 10 {
		slowest, fastest := iters[0], iters[0]
		for _, i := range iters {
			if took(i) >= took(slowest) { // the later of equals
				slowest = i
			}
			if took(i) < took(fastest) {
				fastest = i
			}
		}
		iters = slices.DeleteFunc(slices.Clone(iters), func(i int) bool { return i == slowest || i == fastest })
	}
	return iters
}

func plainSpeedUp(p *party, iters []int, tc float64, tau time.Duration) float64 {
	done, asked, cut, whole := 0, 0, time.Duration(0), time.Duration(0)
	for _, i := range iters {
		var a, b time.Duration
		for w, batch := range p.batches {
			step := max(1, batch/16)
			if p.spec.Micro > 0 {
				step = p.spec.Micro
			}
			for k, end := range p.ends[w][i] {
				if k > 0 && p.ends[w][i][k-1] > tau {
					break
				}
				done += min(step, batch-k*step)
				a = max(a, end)
			}
			asked += batch
			b = max(b, slices.Max(p.ends[w][i]))
		}
		cut, whole = cut+a, whole+b
	}
	n := float64(len(iters))
	return float64(done) / float64(asked) * (float64(whole)/n + tc) / (float64(cut)/n + tc)
}

func drawSpec(t *rapid.T) (work.Spec, []int) {
	spec := work.Spec{Policy: "dropcompute", Profile: rapid.Int64Range(1, 6).Draw(t, "profile"), Micro: rapid.IntRange(0, 5).Draw(t, "micro")}
	return spec, rapid.SliceOfN(rapid.IntRange(1, 20), 1, 5).Draw(t, "batches")
}

// In a run in which nobody is lost and messages take less than an iteration, all workers begin at the same iteration with the tau that the
// second implementation finds, and compute everything before.
func TestTauIsThatOfTheFormula(t *testing.T) {
	drops, free := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		spec, batches := drawSpec(t)
		spec.Profile = rapid.Int64Range(1, 32).Draw(t, "long profile")
		p := newParty(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)), spec, batches)
		p.talk = time.Duration(rapid.Int64Range(0, 2e7).Draw(t, "talk"))
		for iter := range spec.Profile + 6 {
			p.iterate(iter, func() {
				for len(p.mail) > 0 && p.r.IntN(2) == 0 {
					p.deliver(0)
				}
			})
			p.deliverAll()
		}
		from := 1
		if spec.Profile == 1 {
			from = 0
		}
		var iters []int
		for i := from; i < int(spec.Profile); i++ {
			iters = append(iters, i)
		}
		want, best := plainTau(p, iters, p.talk)
		iters = middle(p, iters)
		ends := 0
		for w := range batches {
			ends += len(iters) * (len(p.ends[w][0]) - 1)
		}
		got, s := bestTau(of(p.policies[0]).all)
		if ends > candidatesMax { // some are left out
			if s < 1 || s > best+1e-9 || best > 1.1 && s < 0.95*best || s > 1 && math.Abs(plainSpeedUp(p, iters, float64(p.talk), got)-s) > 1e-9 {
				t.Fatalf("tau %v with speed-up %v, at most %v", got, s, best)
			}
			want = got
		}
		if ends <= candidatesMax && (got != want || s > best+1e-9) {
			t.Fatalf("tau %v with speed-up %v, want %v with %v", got, s, want, best)
		}
		begin := of(p.policies[0]).begin
		for w := range batches {
			if q := of(p.policies[w]); !q.isKnown || q.until != want || q.begin != begin || begin > spec.Profile+5 {
				t.Fatalf("worker %d knows %t: %v from %d on; want %v from %d on", w, q.isKnown, q.until, q.begin, want, begin)
			}
			for iter, until := range p.used[w] {
				limit := time.Duration(0)
				if int64(iter) >= begin {
					limit = want
				}
				if until != limit {
					t.Fatalf("worker %d iteration %d has limit %v, want %v; tau begins at %d", w, iter, until, limit, begin)
				}
				if limit == 0 && len(p.ends[w][iter]) != len(p.ends[w][0]) || len(p.ends[w][iter]) == 0 {
					t.Fatalf("worker %d iteration %d has %d steps of %d", w, iter, len(p.ends[w][iter]), len(p.ends[w][0]))
				}
			}
		}
		if want > 0 {
			drops++
		} else {
			free++
		}
	})
	if drops == 0 || free == 0 {
		t.Errorf("%d runs with a tau, %d without", drops, free)
	}
}

// The speed-up is that of the second implementation, for every tau.
func TestSpeedUpIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, batches := drawSpec(t)
		spec.Profile = rapid.Int64Range(2, 5).Draw(t, "profile")
		p := newParty(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)), spec, batches)
		p.talk = 0 // so Tc is 0
		iters := []int{}
		for iter := range spec.Profile + 1 {
			p.iterate(iter, func() {})
			if iter > 0 && iter < spec.Profile {
				iters = append(iters, int(iter))
			}
		}
		for len(p.mail) > 0 {
			p.deliver(p.r.IntN(len(p.mail)))
		}
		all := of(p.policies[0]).all
		tc, tau := rapid.Float64Range(1, 1e8).Draw(t, "Tc"), rapid.Int64Range(0, 1e8).Draw(t, "tau")
		if got, want := speedUpOf(all, tau, tc), plainSpeedUp(p, iters, tc, time.Duration(tau)); math.Abs(got-want) > 1e-9*want {
			t.Fatalf("S(%v) = %v, want %v", time.Duration(tau), got, want)
		}
	})
}

// Whatever workers are lost, come back, or pause, and however messages overtake each other: at the end all that are
// in the run know the same tau, and each computes at least a step of every iteration. Nobody sends more than its
// profile to each chooser, and a few answers.
func TestWorkersAgreeOnTau(t *testing.T) {
	var lost, back, resumed int
	rapid.Check(t, func(t *rapid.T) {
		spec, batches := drawSpec(t)
		n := len(batches)
		p := newParty(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3)), spec, batches)
		trouble := rapid.IntRange(0, 12).Draw(t, "trouble")
		news := 0
		var iter int64
		between := func() {
			for len(p.mail) > 0 && p.r.IntN(3) > 0 {
				p.deliver(p.r.IntN(len(p.mail)))
			}
		}
		replace := func(w int, memory []float64) {
			p.policies[w], p.gone[w] = New(spec, Env{Me: int32(w), Batches: batches}), false
			if memory != nil {
				if err := of(p.policies[w]).Recall(memory); err != nil {
					t.Fatal(err)
				}
			}
			news++
		}
		for ; iter < 8*spec.Profile+20; iter++ {
			if trouble > 0 && iter < 3*spec.Profile+4 && p.r.IntN(3) == 0 {
				trouble--
				w := p.r.IntN(n)
				alive := 0
				for _, gone := range p.gone {
					if !gone {
						alive++
					}
				}
				switch k := p.r.IntN(3); {
				case p.gone[w]:
					replace(w, nil)
					back++
				case k == 0 && alive > 1:
					p.lose(w)
					lost++
				case k == 1: // a pause: all leave, and go on with their memories
					was := slices.Clone(p.gone)
					for w := range p.policies {
						if !was[w] {
							p.lose(w)
						}
					}
					for w := range p.policies {
						if !was[w] {
							replace(w, of(p.policies[w]).Memory())
						}
					}
					resumed++
				}
			}
			p.iterate(iter, between)
		}
		p.deliverAll()
		p.iterate(iter, func() {})
		first := (*dropCompute)(nil)
		for w := range batches {
			if p.gone[w] {
				continue
			}
			q := of(p.policies[w])
			if !q.isKnown {
				t.Fatalf("worker %d does not know tau after %d iterations", w, iter)
			}
			if first == nil {
				first = q
			}
			if q.until != first.until || q.begin != first.begin || p.used[w][iter] != first.until {
				t.Fatalf("worker %d has tau %v, and computes for %v; the first has %v", w, q.until, p.used[w][iter], first.until)
			}
			for i, steps := range p.ends[w] {
				if p.used[w][i] >= 0 && len(steps) == 0 {
					t.Fatalf("worker %d computes nothing in iteration %d", w, i)
				}
			}
		}
		for w, sent := range p.sent {
			whole := len(of(p.policies[w]).all[w].rows) * (marksMax/perMessage + 2)
			if most := (1 + n + news) * (whole + 3*n); sent > most {
				t.Fatalf("worker %d sent %d messages, at most %d", w, sent, most)
			}
		}
	})
	if lost == 0 || back == 0 || resumed == 0 {
		t.Errorf("%d lost, %d back, %d pauses", lost, back, resumed)
	}
}

// Whatever it has seen, a policy that recalls the memory goes on like the one that it was. What no policy has learned is refused, and
// what one with another batch has learned is forgotten.
func TestDropComputeRecalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, batches := drawSpec(t)
		seed := rapid.Uint64().Draw(t, "seed")
		cut := rapid.Int64Range(0, spec.Profile+4).Draw(t, "cut")
		p := newParty(rand.New(rand.NewPCG(seed, 4)), spec, batches)
		for iter := range cut + spec.Profile + 6 {
			if iter == cut {
				for w := range batches {
					m := of(p.policies[w]).Memory()
					p.policies[w] = New(spec, Env{Me: int32(w), Batches: batches})
					if err := of(p.policies[w]).Recall(m); err != nil {
						t.Fatal(err)
					}
					if again := of(p.policies[w]).Memory(); !of(p.policies[w]).isKnown && cut > 0 && cut < spec.Profile &&
						cmp.Compare(again[5], m[5]) > 0 {
						t.Fatalf("%v became %v", m, again)
					}
				}
			}
			p.iterate(iter, func() {})
			p.deliverAll()
		}
		for w := range batches {
			if q := of(p.policies[w]); !q.isKnown || q.until != of(p.policies[0]).until {
				t.Fatalf("worker %d: tau %v, known %t", w, q.until, q.isKnown)
			}
		}
		q := of(New(spec, Env{Batches: batches}))
		for _, bad := range [][]float64{{}, {1, 2, 3}, {0.5, 1, 0, 0, 0, 0}, {math.NaN(), 1, 0, 0, 0, 0},
			{float64(q.batch), float64(q.step), 0, -1, 0, 0}, {float64(q.batch), float64(q.step), 0, 1, 0, 0, 7}} {
			if err := q.Recall(bad); err == nil {
				t.Fatalf("%v was recalled", bad)
			}
		}
		if err := q.Recall([]float64{99, 1, 0, 5, 0, 0}); err != nil || q.isKnown {
			t.Fatalf("another batch: %v, known %t", err, q.isKnown)
		}
	})
}

// A limit that is set is that of each iteration, under both policies.
func TestTimedIterations(t *testing.T) {
	for _, name := range []string{"anytime", "dropcompute"} {
		p := newParty(rand.New(rand.NewPCG(1, 5)), work.Spec{Policy: name, Time: 5 * time.Millisecond, Micro: 2}, []int{20, 7})
		p.draw = func(w, iter, k int) time.Duration { return time.Duration(1+iter) * 2 * time.Millisecond }
		// the step that begins at 4 ms is the last; then 4 ms, 6 ms and 8 ms each
		for iter, want := range [][2]int{{3, 3}, {2, 2}, {1, 1}, {1, 1}} {
			p.iterate(int64(iter), func() {})
			for w := range 2 {
				if got := len(p.ends[w][iter]); got != want[w] || p.used[w][iter] != 5*time.Millisecond {
					t.Errorf("%s: worker %d iteration %d: %d steps, want %d; limit %v", name, w, iter, got, want[w], p.used[w][iter])
				}
			}
		}
		if len(p.mail) > 0 {
			t.Errorf("%s sends %v", name, p.mail)
		}
	}
}

// Of many micro-batches some in a row count as one, so that no profile grows with the batch.
func TestProfilesAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		batch, step := rapid.Int64Range(1, 1e6).Draw(t, "batch"), rapid.Int64Range(1, 1e4).Draw(t, "step")
		all := samplesOf(batch, step)
		if len(all) > marksMax || all[len(all)-1] != batch || !slices.IsSorted(all) {
			t.Fatalf("%v", all)
		}
		for _, n := range all[:len(all)-1] {
			if n%step != 0 {
				t.Fatalf("a mark at %d, steps of %d", n, step)
			}
		}
		q := of(newDropCompute(work.Spec{Policy: "dropcompute", Micro: int(step),
			Profile: rapid.Int64Range(1, work.ProfileMax).Draw(t, "profile")}, Env{Batches: []int{int(batch), 1}}))
		if n := len(q.Memory()); n > numbersMax+6 {
			t.Fatalf("a memory of %d numbers", n)
		}
	})
}

// One stall in twenty iterations is no reason to leave out samples of all, but one in every second is.
func TestOneStallIsNoReasonToLeaveOut(t *testing.T) {
	measure := func(stalls int) (tau time.Duration, speedUp float64) {
		var all []profile
		for w := range 4 {
			p := profile{samples: []int64{1, 2, 3, 4}}
			for k := range 20 {
				row := []int64{1e6, 2e6, 3e6, 4e6, 1e6}
				if k < stalls && w == k%4 {
					row[1], row[2], row[3] = 101e6, 102e6, 103e6
				}
				p.rows = append(p.rows, row)
			}
			all = append(all, p)
		}
		return bestTau(all)
	}
	if tau, s := measure(2); tau != 0 || s != 1 {
		t.Errorf("after two stalls tau is %v, for a speed-up of %v", tau, s)
	}
	if tau, s := measure(10); tau != 1e6-1 || s < 5 {
		t.Errorf("after ten stalls tau is %v, for a speed-up of %v", tau, s)
	}
}
