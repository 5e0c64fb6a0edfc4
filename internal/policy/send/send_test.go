package send

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// script drives a policy at random, as its node would, and checks the laws after each step.
type script struct {
	t      *rapid.T
	policy Policy
	o      Options
	dests  int

	unhanded       []Event   // not handed yet
	waiting        [][]Event // handed and neither released nor forgotten, per destination, in order of handing
	inFlightPieces [][]Event // released and not sent, per destination
	lastShard      []int32   // per destination: the shard of the piece released last, -1: none
	whole          bool      // a shard that has begun to leave is not interrupted
	gone           map[[2]int32]int
	trace          []string
}

func newScript(t *rapid.T, e Entry) *script {
	largest := int64(rapid.IntRange(1, 50).Draw(t, "largest"))
	s := &script{t: t, dests: rapid.IntRange(1, 3).Draw(t, "destinations"), gone: map[[2]int32]int{}, o: Options{
		Spec: Spec{Window: int64(rapid.IntRange(0, 200).Draw(t, "window")), Credit: int64(rapid.IntRange(1, 200).Draw(t, "credit")),
			Tune: Tune{Points: rapid.IntRange(0, 6).Draw(t, "points"), Steps: 1, Min: 10, Max: 300}}, Largest: largest, Seed: 3}}
	s.policy, s.whole = e.New(s.o), true
	if reply := e.Reply(s.o); reply != nil && rapid.Bool().Draw(t, "reply") {
		s.policy, s.whole = reply, false
	}
	for to := range s.dests {
		for p := range rapid.IntRange(0, 25).Draw(t, "pieces") {
			s.unhanded = append(s.unhanded, Event{Kind: Handed, Piece: int32(p), To: int32(to),
				Layer: int32(rapid.IntRange(0, 5).Draw(t, "layer")), Shard: int32(rapid.IntRange(0, 4).Draw(t, "shard")),
				Bytes: rapid.Int64Range(1, largest).Draw(t, "bytes")})
		}
	}
	s.unhanded = rapid.Permutation(s.unhanded).Draw(t, "order")
	s.waiting, s.inFlightPieces = make([][]Event, s.dests), make([][]Event, s.dests)
	s.lastShard = slices.Repeat([]int32{-1}, s.dests)
	return s
}

func (s *script) inFlight(to int32) (bytes int64) {
	for _, ev := range s.inFlightPieces[to] {
		bytes += ev.Bytes
	}
	return bytes
}

// step tells the policy an event, and records the pieces that it releases.
func (s *script) step(ev Event) {
	if ev.Kind == Handed {
		s.waiting[ev.To] = append(s.waiting[ev.To], ev)
	}
	out := s.policy.Step(ev, nil)
	s.trace = append(s.trace, fmt.Sprintf("%v to=%d p%d: %v", ev.Kind, ev.To, ev.Piece, out))
	for _, p := range out {
		i := slices.IndexFunc(s.waiting[ev.To], func(w Event) bool { return w.Piece == p })
		if i < 0 {
			s.t.Fatalf("released %d, which does not wait for destination %d: %v", p, ev.To, s.trace)
		}
		w := s.waiting[ev.To][i]
		if _, inTurn := s.policy.(*fifo); inTurn && i != 0 {
			s.t.Fatalf("p%d overtakes p%d: %v", p, s.waiting[ev.To][0].Piece, s.trace)
		} else if !inTurn {
			s.urgent(w)
		}
		s.bounded(w)
		s.waiting[ev.To] = slices.Delete(s.waiting[ev.To], i, i+1)
		s.inFlightPieces[ev.To] = append(s.inFlightPieces[ev.To], w)
		s.lastShard[ev.To] = w.Shard
		s.gone[[2]int32{ev.To, p}]++
	}
	held := 0
	for to := range s.waiting {
		held += len(s.waiting[to])
		if len(s.waiting[to]) > 0 && len(s.inFlightPieces[to]) == 0 {
			s.t.Fatalf("%v wait for destination %d, to which nothing is in flight: %v", s.waiting[to], to, s.trace)
		}
	}
	if held != s.policy.Held() {
		s.t.Fatalf("%d pieces wait, %v says %d: %v", held, s.policy, s.policy.Held(), s.trace)
	}
}

// urgent checks that a piece which leaves is the most urgent one, and the oldest of its layer. Where shards are whole,
// it must belong to the shard that has begun, if a piece of that shard waits.
func (s *script) urgent(w Event) {
	among := s.waiting[w.To]
	if s.whole && slices.ContainsFunc(among, func(other Event) bool { return other.Shard == s.lastShard[w.To] }) {
		among = slices.DeleteFunc(slices.Clone(among), func(other Event) bool { return other.Shard != s.lastShard[w.To] })
		if w.Shard != s.lastShard[w.To] {
			s.t.Fatalf("p%d of shard %d interrupts shard %d: %v", w.Piece, w.Shard, s.lastShard[w.To], s.trace)
		}
	}
	if a, ok := s.policy.(*aligned); ok && !a.courses[w.To].over {
		return // its choice is that of its twin
	}
	for _, other := range among {
		if other.Layer < w.Layer {
			s.t.Fatalf("p%d of layer %d leaves before p%d of layer %d: %v", w.Piece, w.Layer, other.Piece, other.Layer, s.trace)
		}
		if other.Layer == w.Layer {
			if other.Piece != w.Piece {
				s.t.Fatalf("p%d leaves before p%d, which is of the same layer and was handed before: %v", w.Piece, other.Piece, s.trace)
			}
			return
		}
	}
}

// bounded checks the bytes in flight when a piece leaves.
func (s *script) bounded(w Event) {
	bytes := s.inFlight(w.To)
	switch p := s.policy.(type) {
	case *priority, *aligned:
		window := s.o.Window
		if window == 0 {
			window = 2 * s.o.Largest
		}
		if bytes > 0 && bytes+w.Bytes > window {
			s.t.Fatalf("%d bytes leave while %d are in flight, and the window is %d: %v", w.Bytes, bytes, window, s.trace)
		}
	case *fifo:
		if window := s.o.Window; window > 0 && bytes > 0 && bytes+w.Bytes > window {
			s.t.Fatalf("%d bytes leave while %d are in flight, and the window is %d: %v", w.Bytes, bytes, window, s.trace)
		}
	case *credit:
		if bytes >= p.credit {
			s.t.Fatalf("%d bytes leave while %d are in flight, and the credit is %d: %v", w.Bytes, bytes, p.credit, s.trace)
		}
	}
}

func (s *script) sent(to int32) {
	i := rapid.IntRange(0, len(s.inFlightPieces[to])-1).Draw(s.t, "which")
	ev := s.inFlightPieces[to][i]
	s.inFlightPieces[to] = slices.Delete(s.inFlightPieces[to], i, i+1)
	ev.Kind = Sent
	s.step(ev)
}

// Every policy, for any order of events: each piece leaves once, for its own destination, whatever happens at other
// destinations. The more urgent piece leaves first. The bytes in flight are bounded. A piece waits only where another
// is in flight, so all pieces have left when all were sent.
func TestLawsOfEveryPolicy(t *testing.T) {
	for _, e := range All {
		t.Run(e.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := newScript(t, e)
				all, forgotten := len(s.unhanded), 0
				for now := time.Duration(0); len(s.unhanded) > 0; now += time.Millisecond {
					to := int32(rapid.IntRange(0, s.dests-1).Draw(t, "to"))
					switch rapid.IntRange(0, 12).Draw(t, "what") {
					case 0:
						s.step(Event{Kind: Started, At: now})
					case 1:
						forgotten += len(s.waiting[to])
						s.waiting[to] = nil
						s.step(Event{Kind: Forgotten, To: to})
					case 2, 3, 4, 5:
						if len(s.inFlightPieces[to]) > 0 {
							s.sent(to)
						}
					default:
						ev := s.unhanded[0]
						s.unhanded = s.unhanded[1:]
						s.step(ev)
					}
				}
				for to := range s.inFlightPieces {
					for len(s.inFlightPieces[to]) > 0 {
						s.sent(int32(to))
					}
				}
				if len(s.gone)+forgotten != all || s.policy.Held() != 0 {
					t.Fatalf("%d pieces, %d left and %d were forgotten, %v: %v", all, len(s.gone), forgotten, s.policy, s.trace)
				}
				for p, n := range s.gone {
					if n != 1 {
						t.Fatalf("piece %v left %d times", p, n)
					}
				}
			})
		})
	}
}

// dumb is every policy once more, in the simplest form: a list that is searched each time.
type dumb struct {
	inTurn    bool // whatever the layers
	room      func(flying, next int64) bool
	waiting   []Event
	flying    map[int32]int64
	lastShard map[int32]int32 // per destination: the shard of the piece released last; nil: shards may be interrupted
	aligned   bool
	handed    map[int32][]Event // per destination: all that was ever handed
	left      map[int32][]Event // per destination: what left in this iteration
	over      map[int32]bool    // per destination: the first place was handed last
}

// placeBefore orders places by layer and shard.
func placeBefore(a, b Event) bool {
	return a.Layer < b.Layer || a.Layer == b.Layer && a.Shard < b.Shard
}

// rank counts the distinct places before one.
func (d *dumb) rank(ev Event) int {
	before := map[[2]int32]bool{}
	for _, h := range d.handed[ev.To] {
		if placeBefore(h, ev) {
			before[[2]int32{h.Layer, h.Shard}] = true
		}
	}
	return len(before)
}

// factor is the largest power of two that divides the rank of a place.
func (d *dumb) factor(ev Event) int {
	n, power := d.rank(ev), 1
	for power < 1<<20 && n%(2*power) == 0 {
		power *= 2
	}
	return power
}

// next says whether no place that left in this iteration is as far as this one, or further.
func (d *dumb) next(ev Event) bool {
	return !slices.ContainsFunc(d.left[ev.To], func(l Event) bool { return !placeBefore(ev, l) })
}

// before says whether a leaves before b, which was handed earlier.
func (d *dumb) before(a, b Event) bool {
	if d.inTurn {
		return false
	}
	begun, any := d.lastShard[a.To]
	if ra, rb := any && a.Shard == begun, any && b.Shard == begun; ra != rb {
		return ra
	} else if ra {
		return a.Layer < b.Layer
	}
	if d.aligned && !d.over[a.To] {
		if na, nb := d.next(a), d.next(b); na != nb {
			return na
		} else if na {
			fa, fb := d.factor(a), d.factor(b)
			return fa > fb || fa == fb && placeBefore(b, a)
		}
	}
	return a.Layer < b.Layer
}

func (d *dumb) step(ev Event) (out []int32) {
	switch ev.Kind {
	case Handed:
		d.waiting = append(d.waiting, ev)
		if d.aligned {
			d.handed[ev.To] = append(d.handed[ev.To], ev)
			first := d.rank(ev) == 0
			if d.over[ev.To] && !first {
				d.left[ev.To] = nil
			}
			d.over[ev.To] = first
		}
	case Sent:
		d.flying[ev.To] -= ev.Bytes
	case Forgotten:
		d.waiting = slices.DeleteFunc(d.waiting, func(w Event) bool { return w.To == ev.To })
	}
	for {
		best := -1
		for i, w := range d.waiting {
			if w.To == ev.To && (best < 0 || d.before(w, d.waiting[best])) {
				best = i
			}
		}
		if best < 0 || !d.room(d.flying[ev.To], d.waiting[best].Bytes) {
			return out
		}
		out = append(out, d.waiting[best].Piece)
		d.flying[ev.To] += d.waiting[best].Bytes
		if d.lastShard != nil {
			d.lastShard[ev.To] = d.waiting[best].Shard
		}
		if d.aligned {
			d.left[ev.To] = append(d.left[ev.To], d.waiting[best])
		}
		d.waiting = slices.Delete(d.waiting, best, best+1)
	}
}

func TestPoliciesAreTheirDumbTwins(t *testing.T) {
	window := func(o Options) func(int64, int64) bool {
		return func(flying, next int64) bool { return flying == 0 || flying+next <= o.Window }
	}
	rooms := map[string]func(o Options) func(flying, next int64) bool{
		"fifo":     window,
		"priority": window,
		"aligned":  window,
		"credit": func(o Options) func(int64, int64) bool {
			return func(flying, next int64) bool { return flying < o.Credit }
		},
	}
	for name, room := range rooms {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				o := Options{Largest: 20,
					Spec: Spec{Window: rapid.Int64Range(1, 100).Draw(t, "window"), Credit: rapid.Int64Range(1, 100).Draw(t, "credit")}}
				e, _ := All.Lookup(name)
				p, d := e.New(o), &dumb{inTurn: name == "fifo", room: room(o), flying: map[int32]int64{},
					lastShard: map[int32]int32{}, aligned: name == "aligned",
					handed: map[int32][]Event{}, left: map[int32][]Event{}, over: map[int32]bool{}}
				if rapid.Bool().Draw(t, "reply") {
					p, d.lastShard, d.aligned = e.Reply(o), nil, false
				}
				var flying []Event
				pieces := map[int32]Event{}
				for i := range rapid.IntRange(1, 120).Draw(t, "events") {
					ev := Event{Kind: Handed, Piece: int32(i), To: int32(rapid.IntRange(0, 1).Draw(t, "to")),
						Layer: int32(rapid.IntRange(0, 4).Draw(t, "layer")), Shard: int32(rapid.IntRange(0, 3).Draw(t, "shard")),
						Bytes: rapid.Int64Range(1, 20).Draw(t, "bytes")}
					switch what := rapid.IntRange(0, 20).Draw(t, "what"); {
					case what == 0:
						ev = Event{Kind: Forgotten, To: ev.To}
					case what < 10 && len(flying) > 0:
						k := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
						ev = flying[k]
						ev.Kind = Sent
						flying = slices.Delete(flying, k, k+1)
					default:
						pieces[ev.Piece] = ev
					}
					got, want := p.Step(ev, nil), d.step(ev)
					if !slices.Equal(got, want) {
						t.Fatalf("%+v: released %v, its twin %v; %v", ev, got, want, p)
					}
					for _, piece := range got {
						flying = append(flying, pieces[piece])
					}
				}
			})
		})
	}
}

// A net of 16 layers: backward hands them last first, and the link has room for two. The first layer overtakes all that
// wait; only the pieces in flight leave before it.
func TestTheFirstLayerOvertakesWhatWaits(t *testing.T) {
	e, _ := All.Lookup("priority")
	p := e.New(Options{Largest: 100})
	var gone []int32
	for layer := int32(15); layer >= 0; layer-- {
		gone = p.Step(Event{Kind: Handed, Piece: layer, Layer: layer, Shard: layer, Bytes: 100}, gone)
	}
	for i := 0; i < len(gone); i++ {
		gone = p.Step(Event{Kind: Sent, Piece: gone[i], Layer: gone[i], Bytes: 100}, gone)
	}
	if want := []int32{15, 14, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}; !slices.Equal(gone, want) {
		t.Fatalf("released %v, want %v", gone, want)
	}
}

// A push is answered when all of its shard has landed: pieces 0 to 3 of layer 0 wait until pieces 4 to 7 of layer 1
// have left. In replies, pieces of one shard overtake those of another.
func TestAShardIsNotInterruptedButItsReplyIs(t *testing.T) {
	e, _ := All.Lookup("priority")
	for _, c := range []struct {
		policy Policy
		want   []int32
	}{{e.New(Options{Largest: 100}), []int32{4, 5, 6, 7, 0, 1, 2, 3}}, {e.Reply(Options{Largest: 100}), []int32{4, 5, 0, 1, 2, 3, 6, 7}}} {
		var gone []int32
		for _, piece := range []int32{4, 5, 6, 7, 0, 1, 2, 3} {
			gone = c.policy.Step(Event{Kind: Handed, Piece: piece, Layer: piece / 4, Shard: piece / 4, Bytes: 100}, gone)
		}
		for i := 0; i < len(gone); i++ {
			gone = c.policy.Step(Event{Kind: Sent, Piece: gone[i], Bytes: 100}, gone)
		}
		if !slices.Equal(gone, c.want) {
			t.Errorf("released %v, want %v", gone, c.want)
		}
	}
}

// The two ends of ByteScheduler's credit: one piece is stop-and-wait, no limit is the order of readiness.
func TestTheEndsOfCredit(t *testing.T) {
	e, _ := All.Lookup("credit")
	for bytes, want := range map[int64][]int32{1: {2, 0, 1}, 1 << 40: {2, 1, 0}} {
		p := e.New(Options{Spec: Spec{Credit: bytes}})
		var gone []int32
		for layer := int32(2); layer >= 0; layer-- {
			gone = p.Step(Event{Kind: Handed, Piece: layer, Layer: layer, Shard: layer, Bytes: 100}, gone)
		}
		for i := 0; i < len(gone); i++ {
			gone = p.Step(Event{Kind: Sent, Piece: gone[i], Layer: gone[i], Bytes: 100}, gone)
		}
		if !slices.Equal(gone, want) {
			t.Errorf("credit %d: released %v, want %v", bytes, gone, want)
		}
	}
}

func TestFifoKeepsTheOrderOfReadiness(t *testing.T) {
	e, ok := All.Lookup("fifo")
	if !ok {
		t.Fatal("fifo is not in the table")
	}
	if e.Reply(Options{}) != nil {
		t.Error("without a window replies do not leave whole")
	}
	p := e.New(Options{})
	var gone []int32
	for _, piece := range []int32{5, 2, 9, 0} {
		gone = p.Step(Event{Kind: Handed, Piece: piece, Layer: piece}, gone)
	}
	if want := []int32{5, 2, 9, 0}; !slices.Equal(gone, want) {
		t.Fatalf("fifo released %v, want %v", gone, want)
	}
}

// In steady state a policy makes no garbage.
func TestPoliciesDoNotAllocate(t *testing.T) {
	for _, e := range All {
		p := e.New(Options{Largest: 100, Spec: Spec{Credit: 150}})
		out := make([]int32, 0, 64)
		iteration := func() {
			out = p.Step(Event{Kind: Started}, out[:0])
			for layer := int32(15); layer >= 0; layer-- {
				out = p.Step(Event{Kind: Handed, Piece: layer, Layer: layer, Shard: layer / 2, Bytes: 100}, out)
			}
			for i := 0; i < len(out); i++ {
				out = p.Step(Event{Kind: Sent, Piece: out[i], Layer: out[i], Bytes: 100}, out)
			}
		}
		if n := testing.AllocsPerRun(100, iteration); n != 0 || len(out) != 16 {
			t.Errorf("%s: %v allocations per iteration, and %d of 16 pieces left", e.Name, n, len(out))
		}
	}
}
