package tasks

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// flexTwin is FlexRR's decision once more, from the notes on its protocol alone: a table of samples, and one helper after the other.
type flexTwin struct {
	free   []bool // by sample: it has not begun and nobody has it
	begun  int
	iter   int64
	spec   work.Help
	chunks map[int32][2]int32
}

// asked answers PROGRESS(it, f, at) of a helper that has no chunk and got so many before.
func (w *flexTwin) asked(h int32, it int64, f, sinceThen float64, before int32) {
	if it < w.iter {
		return // DONT_NEED
	}
	own := float64(w.begun) / float64(len(w.free))
	behind := float64(it-w.iter) + (f - own) + min(sinceThen, 1-f)
	var free []int
	for s, is := range w.free {
		if is {
			free = append(free, s)
		}
	}
	left := float64(len(free)) / float64(len(w.free))
	if !(behind > w.spec.Behind && left > w.spec.Left) {
		return
	}
	amount := 0
	switch all := float64(len(w.free)); {
	case w.spec.First > 0 && before == 0:
		amount = max(1, int(math.Round(w.spec.First*all)))
	case w.spec.First > 0:
		amount = max(1, int(math.Round(w.spec.Next*all)))
	case before == 0:
		amount = int(math.Floor(min(behind/2, left/2) * all))
	}
	if amount = min(amount, len(free)); amount == 0 {
		return
	}
	to := free[len(free)-1] + 1
	for s := to - amount; s < to; s++ {
		w.free[s] = false
	}
	w.chunks[h] = [2]int32{int32(to - amount), int32(to)}
}

// tenTimes checks ten times as often as other properties are: a state is drawn at once.
func tenTimes(t *testing.T, check func(t *rapid.T)) {
	for range 10 {
		rapid.Check(t, check)
	}
}

// In any state FlexRR gives what the notes say.
func TestFlexRRDecidesAsItsTwin(t *testing.T) {
	gaveAll, gaveNone := 0, 0
	tenTimes(t, func(t *rapid.T) {
		const batch, usual = 64, 1024
		n := int32(rapid.IntRange(2, 6).Draw(t, "workers"))
		s := specOf(t, "flexrr")
		p := newFlexRR(s, Env{Me: 0, Batches: slices.Repeat([]int{batch}, int(n))}).(*flexRR)
		p.iter, p.end = int64(rapid.IntRange(0, 3).Draw(t, "iteration")), int32(rapid.IntRange(1, batch).Draw(t, "own"))
		p.begun = int32(rapid.IntRange(0, int(p.end)).Draw(t, "begun"))
		now := time.Duration(rapid.IntRange(0, 4096).Draw(t, "now"))
		twin := &flexTwin{free: make([]bool, batch), begun: int(p.begun), iter: p.iter, spec: s.Help, chunks: map[int32][2]int32{}}
		for i := max(1, p.begun); i < p.end; i++ { // one sample stays with its owner
			twin.free[i] = true
		}
		for h := int32(1); h < n; h++ {
			f := progress{known: rapid.Bool().Draw(t, "known"), iter: int64(rapid.IntRange(0, 4).Draw(t, "its iteration")),
				share: float64(rapid.IntRange(0, 64).Draw(t, "share")) / 64,
				usual: usual, at: time.Duration(rapid.IntRange(0, int(now)).Draw(t, "at"))}
			p.helpers[h], p.given[h], p.gone[h] = f, int32(rapid.IntRange(0, 2).Draw(t, "given")), rapid.IntRange(0, 4).Draw(t, "gone") == 0
			if f.known && !p.gone[h] {
				twin.asked(h, f.iter, f.share, float64(now-f.at)/usual, p.given[h])
			}
		}
		got := map[int32][2]int32{}
		for _, o := range p.offer(now, nil) {
			if o.Kind == core.Tell {
				got[o.To] = [2]int32{int32(o.Msg.Samples), int32(o.Msg.Correct)}
			}
		}
		if len(got) == 0 {
			gaveNone++
		} else {
			gaveAll++
		}
		for h := int32(1); h < n; h++ {
			if got[h] != twin.chunks[h] {
				t.Fatalf("worker %d gets %v, its twin says %v", h, got[h], twin.chunks[h])
			}
		}
	})
	if min(gaveAll, gaveNone) == 0 {
		t.Errorf("%d states with chunks, %d without", gaveAll, gaveNone)
	}
}

// epspOf draws an EPSP in the middle of an iteration, whose workers have any speed.
func epspOf(t *rapid.T) *epsp {
	n := rapid.IntRange(2, 6).Draw(t, "workers")
	batches := make([]int, n)
	for w := range batches {
		batches[w] = rapid.IntRange(1, 64).Draw(t, "batch")
	}
	s := specOf(t, "epsp")
	p := newEPSP(s, Env{Me: int32(rapid.IntRange(0, n-1).Draw(t, "me")), Batches: batches}).(*epsp)
	for w := range n {
		p.speeds[w] = rapid.SampledFrom([]float64{1000, 900, 500, 333, 100, 10}).Draw(t, "speed")
		p.gone[w] = int32(w) != p.me && rapid.IntRange(0, 5).Draw(t, "gone") == 0
	}
	return p
}

// projections are the times that the workers are projected to take for the iteration, in seconds: so far, and what is left at the speed.
func projections(p *epsp) (mine float64, all []float64) {
	at := (p.now - p.started).Seconds()
	for w, u := range p.speeds {
		f := max(at, float64(p.batches[w])/u)
		switch {
		case p.gone[w]:
			continue
		case int32(w) == p.me:
			mine = at + float64(p.end-p.begun)/u
			f = mine
		case p.finished[w] >= p.iter:
			f = p.took[w].Seconds()
		}
		all = append(all, f)
	}
	return mine, all
}

// In any state a straggler is a worker whose projection is beyond that of half of the workers, with itself, by more than alpha.
func TestStragglersAreProjectedAsByTheirTwin(t *testing.T) {
	found := map[bool]int{}
	tenTimes(t, func(t *rapid.T) {
		p := epspOf(t)
		p.iter, p.end = 1, int32(p.batches[p.me])
		p.begun = int32(rapid.IntRange(0, int(p.end)).Draw(t, "begun"))
		p.now = time.Duration(rapid.IntRange(0, 300).Draw(t, "now")) * time.Millisecond
		for w := range p.batches {
			p.finished[w] = int64(rapid.IntRange(0, 1).Draw(t, "finished"))
			p.took[w] = time.Duration(rapid.IntRange(1, 300).Draw(t, "took")) * time.Millisecond
		}
		mine, all := projections(p)
		half := math.Inf(1) // the least projection that half of the workers do not exceed
		for _, f := range all {
			within := 0
			for _, g := range all {
				if g <= f {
					within++
				}
			}
			if 2*within >= len(all) {
				half = min(half, f)
			}
		}
		want := mine > (1+p.alpha)*half
		if math.Abs(mine-(1+p.alpha)*half) < 1e-6 {
			t.Skip("a tie")
		}
		found[want]++
		if got := p.isStraggler(); got != want {
			t.Fatalf("straggler: %t, want %t; projected %v of %v", got, want, mine, all)
		}
	})
	if min(found[true], found[false]) == 0 {
		t.Errorf("stragglers: %v", found)
	}
}

// A pioneer takes as many samples of the best offer as it computes while the owner computes the rest: the most, tried
// one by one, in whole tasks, and one task at least. It takes nothing that the owner would have computed by then.
func TestAPioneerTakesAsItsTwin(t *testing.T) {
	took := 0
	tenTimes(t, func(t *rapid.T) {
		p := epspOf(t)
		p.iter, p.isFixed = 1, true
		var best *proffer
		for w := range p.batches {
			if int32(w) == p.me || p.gone[w] {
				continue
			}
			p.asked[w] = true
		}
		var orders []core.Order
		for w, is := range p.asked {
			if !is {
				continue
			}
			o := proffer{from: int32(w), iter: 1, samples: int64(rapid.IntRange(0, 60).Draw(t, "samples")), speed: p.speeds[w],
				finish: time.Duration(rapid.IntRange(1, 1_000_000).Draw(t, "finish"))}
			if o.samples > 0 && (best == nil || o.finish > best.finish) {
				best = &o
			}
			m := p.offerTo(p.me, o.samples, 0).Msg
			m.Worker, m.Iter, m.Loss, m.Blocked = o.from, o.iter, o.speed, int64(o.finish)
			if len(orders) > 0 {
				t.Fatal("it takes before all have answered")
			}
			orders = p.heard(&m, nil)
		}
		want := int64(0)
		if u := p.speeds[p.me]; best != nil {
			for n := int64(0); n <= best.samples && float64(n)*(u+best.speed) <= float64(best.samples)*u; n++ {
				want = n
			}
			if tasks := want / int64(p.step); tasks > 0 {
				want = tasks * int64(p.step)
			} else {
				want = min(best.samples, int64(p.step))
			}
			if float64(want)/u >= float64(best.samples)/best.speed {
				want = 0
			}
		}
		got, from := int64(0), int32(-1)
		for _, o := range orders {
			got, from = o.Msg.Samples, o.To
		}
		if got != want || got > 0 && from != best.from {
			t.Fatalf("it takes %d of worker %d, want %d of %+v; its speed is %v", got, from, want, best, p.speeds[p.me])
		}
		if got > 0 {
			took++
		}
	})
	if took == 0 {
		t.Error("nothing was taken")
	}
}

// All workers that know the same speeds lend at the start of an iteration what the elastic control says: with the
// common finish T, only a worker that would take longer than (1+alpha) T gives, whole tasks, down to its share and
// not below; nobody gets more than its share, but for half a task of each giver; and a giver keeps what is beyond its
// share only if nobody has room for a task of it.
func TestLoansFitTheSpeeds(t *testing.T) {
	gave := 0
	tenTimes(t, func(t *rapid.T) {
		p := epspOf(t)
		var samples, speed float64
		for w, b := range p.batches {
			if !p.gone[w] {
				samples, speed = samples+float64(b), speed+p.speeds[w]
			}
		}
		finish := samples / speed
		got, givers, free := make([]float64, len(p.batches)), 0, 0.0
		kept := map[int]float64{}
		for w, b := range p.batches {
			if p.gone[w] {
				continue
			}
			share := p.speeds[w] * finish
			p.me = int32(w)
			loans := p.loans()
			given := 0.0
			for _, l := range loans {
				if l.n%p.step != 0 || l.n <= 0 || p.gone[l.helper] || l.helper == p.me {
					t.Fatalf("worker %d lends %+v in steps of %d", w, loans, p.step)
				}
				given += float64(l.n)
				got[l.helper] += float64(l.n)
			}
			if len(loans) > 0 {
				gave++
			}
			late := float64(b) > (1+p.alpha)*share+1e-9
			switch {
			case given > 0 && float64(b) < (1+p.alpha)*share-1e-9:
				t.Fatalf("worker %d, with %d samples and a share of %v, gives %v", w, b, share, given)
			case given > 0 && float64(b)-given < share-1e-9:
				t.Fatalf("worker %d keeps %v, less than its share of %v", w, float64(b)-given, share)
			}
			if late {
				givers++
				kept[w] = float64(b) - given - share
			}
		}
		for w, n := range got {
			if room := p.speeds[w]*finish - float64(p.batches[w]); n > 0 && n > room+float64(givers)*float64(p.step)/2+1e-9 {
				t.Fatalf("worker %d gets %v, and has room for %v; %d give", w, n, room, givers)
			} else if !p.gone[w] && room > 0 {
				free = max(free, room-n)
			}
		}
		for w, more := range kept {
			step := float64(p.step)
			if keeps := p.speeds[w]*finish + more; keeps-step >= 2*step && givers == 1 && more >= step+1e-9 && free >= step/2+1e-9 {
				t.Fatalf("worker %d keeps %v more than its share, and somebody has room for %v", w, more, free)
			}
		}
	})
	if gave == 0 {
		t.Error("nothing was lent")
	}
}
