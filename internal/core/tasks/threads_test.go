package tasks

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core"
)

// useThreads checks that a worker starts an iteration with the threads that the ledger says: those of the start,
// without those that it gave away, and with those that have come. So a host never computes with more than at first.
func (m *model) useThreads(w *modelWorker) {
	l, most := &m.threads, int32(m.spec.ThreadsMax)
	if m.spec.Policy != "epsp" || most == 0 {
		if w.own.Threads != 0 {
			m.fail("worker %d takes %d threads, and none may move", w.me, w.own.Threads)
		}
		return
	}
	has := modelBase - l.given[w.me] + l.come[w.me]
	if w.own.Threads != min(has, most) || w.own.Threads < 1 {
		m.fail("worker %d takes %d threads in iteration %d; it gave %d away and %d have come, at most %d are allowed", w.me,
			w.own.Threads, w.iter, l.given[w.me], l.come[w.me], most)
	}
	l.used[w.me] = w.own.Threads
}

// threadsOf draws an EPSP whose workers have any threads, on one host or two.
func threadsOf(t *rapid.T) *epsp {
	p := epspOf(t)
	p.threads.base, p.threads.most = 4, int32(rapid.IntRange(4, 8).Draw(t, "most"))
	p.threads.hosts = make([]int32, len(p.batches))
	for w := range p.batches {
		p.threads.hosts[w] = int32(rapid.IntRange(0, 1).Draw(t, "host"))
		p.threads.held[w] = int32(rapid.IntRange(1, 9).Draw(t, "threads"))
	}
	p.threads.used = p.threads.of(p.me)
	return p
}

// given is whom the worker gives a thread; -1: nobody.
func given(t *rapid.T, p *epsp) int32 {
	to := int32(-1)
	for _, o := range p.giveThread(nil) {
		if o.Kind != core.Tell || o.Msg.Flags != thread || to >= 0 {
			t.Fatalf("worker %d orders %+v", p.me, o)
		}
		to = o.To
	}
	return to
}

// In any state at most one worker of a host gives a thread, and it is the pair that a search over all pairs finds.
func TestAThreadIsGivenAsByItsTwin(t *testing.T) {
	gave := map[bool]int{}
	tenTimes(t, func(t *rapid.T) {
		p := threadsOf(t)
		t1 := &p.threads
		var samples, speed float64
		for w, b := range p.batches {
			if !p.gone[w] {
				samples, speed = samples+float64(b), speed+p.speeds[w]
			}
		}
		late := (1 + p.alpha) * (samples / speed)
		now := func(w int) float64 { return float64(p.batches[w]) / p.speeds[w] }
		takes := func(w int, threads int32) float64 { // with so many threads
			return float64(p.batches[w]) / p.speeds[w] * float64(min(t1.held[w], t1.most)) / float64(min(threads, t1.most))
		}
		bestGives, bestTakes, want := math.Inf(1), 0.0, [2]int32{-1, -1}
		for g := range p.batches {
			for k := range p.batches {
				if p.gone[g] || p.gone[k] || t1.hosts[g] != t1.hosts[p.me] || t1.hosts[k] != t1.hosts[p.me] || t1.held[g] < 2 ||
					t1.held[k] >= t1.most ||
					!(now(k) > late) {
					continue
				}
				gives := takes(g, t1.held[g]-1)
				if gives < bestGives || gives == bestGives && now(k) > bestTakes {
					bestGives, bestTakes, want = gives, now(k), [2]int32{int32(g), int32(k)}
				}
			}
		}
		if bestGives >= bestTakes*(1-1e-9) {
			want = [2]int32{-1, -1}
		}
		got := [2]int32{-1, -1}
		for w := range p.batches {
			if q := *p; !p.gone[w] && t1.hosts[w] == t1.hosts[p.me] {
				q.me, q.speeds, q.threads.held = int32(w), slices.Clone(p.speeds), slices.Clone(t1.held)
				if to := given(t, &q); to >= 0 {
					if got[0] >= 0 {
						t.Fatalf("workers %d and %d give a thread", got[0], w)
					}
					got = [2]int32{int32(w), to}
				}
			}
		}
		gave[got[0] >= 0]++
		if got != want {
			t.Fatalf("from and to %v, want %v", got, want)
		}
	})
	if min(gave[true], gave[false]) == 0 {
		t.Errorf("threads given: %v", gave)
	}
}

// Where speeds stay as they are and all know them, threads come to rest: each move makes the slower of the two faster
// than it was, and so no thread goes back and forth. All threads of a host are there all the time.
func TestThreadsComeToRest(t *testing.T) {
	longest := 0
	rapid.Check(t, func(t *rapid.T) {
		p := threadsOf(t)
		all, moves := int32(0), 0
		for w, n := range p.threads.held {
			p.threads.held[w] = min(n, p.threads.most)
			all += p.threads.held[w]
		}
		for quiet := 0; quiet < len(p.batches); {
			for w := range p.batches {
				p.me = int32(w)
				before := func(w int32) float64 { return float64(p.batches[w]) / p.speeds[w] }
				if quiet++; p.gone[w] {
					continue
				}
				p.threads.used = p.threads.of(p.me)
				was := slices.Clone(p.speeds)
				to := given(t, p)
				p.useThreads()
				if to < 0 {
					continue
				}
				quiet = 0
				if late := float64(p.batches[to]) / was[to]; max(before(p.me), before(to)) >= late {
					t.Fatalf("worker %d gives one of its threads to worker %d, and now they take %v and %v; that one took %v", w, to,
						before(p.me), before(to), late)
				}
				if moves++; moves > 8*len(p.batches) {
					t.Fatalf("%d moves, and no rest: %v", moves, p.threads.held)
				}
			}
		}
		sum := int32(0)
		for w, n := range p.threads.held {
			if sum += n; n < 1 || n > p.threads.most {
				t.Fatalf("worker %d has %d threads", w, n)
			}
		}
		if longest = max(longest, moves); sum != all {
			t.Fatalf("%d threads of %d are left: %v", sum, all, p.threads.held)
		}
	})
	if longest < 3 {
		t.Errorf("at most %d moves", longest)
	}
}

// A slow worker's iterations get shorter as threads of its host come, and its speed is the one of all its threads from the first on.
func TestAStragglerGetsThreads(t *testing.T) {
	s := specOfThreads(4)
	m := steady(t, s, 16, 8, []float64{3, 1, 1, 1})
	m.run(10_000)
	if got, want := m.threads.used, []int32{3, 1, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("threads %v, want %v", got, want)
	}
	for w, k := range m.workers {
		p := k.policy.(*epsp)
		if u, want := p.speeds[0], 1000.0/3*3/2; math.Abs(u-want) > want/20 {
			t.Errorf("worker %d takes worker 0 for one of %v samples a second, want %v", w, u, want)
		}
		mem := p.Memory()
		if u, want := mem[2], 1000.0/3; math.Abs(u-want) > want/20 {
			t.Errorf("worker %d remembers %v samples a second of worker 0 with the threads of the start, want %v", w, u, want)
		}
	}
}
