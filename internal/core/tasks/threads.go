package tasks

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// The elastic control of parallelism within a worker, of epsp. That Falcon has one is the paper's [P]; what it is in
// detail is reconstructed [R]. The parallelism p of a worker is the number of threads of its kernels. It changes only
// when the worker starts an iteration. Each worker begins with device.threads, and a thread that one worker gives up
// is another one's on the same host. So a host computes with as many threads as ever:
//
//	taker   of a host's workers with batch / u > (1 + alpha) T and p < threads_max the one that takes longest; it uses the thread from
//	        its next iteration on
//	giver   of a host's workers with p > 1 the one that would take the shortest time with a thread less; it gives one if that is less
//	        than the taker takes now. So each move makes the slower of the two faster, and none is taken back
//
// The workers know the same speeds, so as a rule one of them alone takes itself for the giver. Speeds are scaled with p until the new
// ones are measured.

// threads are the threads of the workers' kernels.
type threads struct {
	base  int32   // what each worker begins with
	most  int32   // of a worker; 0: none moves
	used  int32   // in the worker's own iteration
	held  []int32 // by worker, as far as is known: also those that it does not use yet
	hosts []int32 // by worker
}

func newThreads(s work.Spec, e Env) threads {
	n := len(e.Batches)
	t := threads{base: int32(max(1, e.Threads)), most: int32(s.ThreadsMax), held: make([]int32, n), hosts: e.Hosts}
	if len(t.hosts) != n {
		t.most = 0
	}
	t.used = t.base
	for w := range t.held {
		t.held[w] = t.base
	}
	return t
}

// of is how many threads a worker uses, if it uses all that it may.
func (t *threads) of(w int32) int32 {
	if t.most == 0 {
		return t.base
	}
	return min(t.held[w], t.most)
}

// giveThread gives one of the worker's threads away, if this worker is the one whose turn it is.
func (p *epsp) giveThread(out []core.Order) []core.Order {
	t := &p.threads
	finish, known := p.commonFinish()
	if t.most == 0 || !known {
		return out
	}
	giver, taker := int32(-1), int32(-1)
	var gives, takes float64 // how long they take: the giver with a thread less
	for i, batch := range p.batches {
		w := int32(i)
		if p.gone[w] || t.hosts[w] != t.hosts[p.me] {
			continue
		}
		is := float64(batch) / p.speeds[w]
		if n := t.held[w]; n > 1 {
			if less := is * float64(t.of(w)) / float64(min(n-1, t.most)); giver < 0 || less < gives {
				giver, gives = w, less
			}
		}
		if is > float64((1+p.alpha)*finish) && t.held[w] < t.most && (taker < 0 || is > takes) {
			taker, takes = w, is
		}
	}
	const rounding = 1e-9 // equal times are no gain
	if giver != p.me || taker < 0 || gives >= float64(takes*(1-rounding)) {
		return out
	}
	t.held[giver]--
	before := t.of(taker)
	t.held[taker]++ // until it tells itself
	p.speeds[taker] *= float64(t.of(taker)) / float64(before)
	return append(out, tell(taker, thread, wire.Header{Iter: p.iter + 1}))
}

// useThreads makes the worker use the threads that it has, and says how many; 0: as many as ever.
func (p *epsp) useThreads() int32 {
	t := &p.threads
	if t.most == 0 {
		return 0
	}
	if n := t.of(p.me); n != t.used {
		p.meter.seconds *= float64(t.used) / float64(n)
		p.speeds[p.me] *= float64(n) / float64(t.used)
		t.used = n
	}
	return t.used
}

// speedWithAll is the worker's speed with all threads that it has, also those that have come during the iteration.
func (p *epsp) speedWithAll() float64 {
	return p.speeds[p.me] * float64(p.threads.of(p.me)) / float64(p.threads.used)
}
