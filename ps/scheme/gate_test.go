package scheme

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func newTestGate(t testing.TB, name string, workers int, common Common) Scheme {
	t.Helper()
	e, _ := All.Lookup(name)
	s, err := e.New(Env{Workers: workers, Shards: []int32{0}, Servers: 1}, common, e.Params())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBadEventsPanic: an event that no driver may send is our own bug, and the text names event and state.
func TestBadEventsPanic(t *testing.T) {
	push := Event{Kind: Pushed, Iter: 0, Parts: 1, Samples: 1}
	for _, c := range []struct {
		want   string
		events []Event
	}{
		{"an unknown worker", []Event{{Kind: Wanted, Worker: 2}}},
		{"an unknown worker", []Event{{Kind: Wanted, Worker: -1}}},
		{"another shard's event", []Event{{Kind: Wanted, Shard: 1}}},
		{"already closed", []Event{push, push}},
		{"exactly 1 part", []Event{{Kind: Pushed, Parts: 2, Samples: 1}}},
		{"exactly 1 part", []Event{{Kind: Pushed, Samples: 1}}},
		{"helper's pushes", []Event{{Kind: Pushed, Parts: 1, Owner: 1, Samples: 1}}},
		{"negative sample", []Event{{Kind: Pushed, Parts: 1, Samples: -1}}},
		{"beyond its pushes", []Event{{Kind: Wanted, Iter: 1}}},
		{"beyond its pushes", []Event{{Kind: Wanted, Iter: -1}}},
		{"already open", []Event{push, {Kind: Wanted, Iter: 1}, {Kind: Wanted, Iter: 1}}},
		{"while its pull is open", []Event{push, {Kind: Wanted, Iter: 1}, {Kind: Pushed, Iter: 1, Parts: 1, Samples: 1}}},
		{"never given", []Event{{Kind: Ready}}},
		{"never given", []Event{{Kind: Alarm}}},
	} {
		s := newTestGate(t, "bsp", 2, Common{})
		last := c.events[len(c.events)-1]
		for _, ev := range c.events[:len(c.events)-1] {
			s.Step(ev, nil)
		}
		func() {
			defer func() {
				got := fmt.Sprint(recover())
				for _, part := range []string{c.want, last.String(), s.String()} {
					if !strings.Contains(got, part) {
						t.Errorf("%v: panic %q lacks %q", last, got, part)
					}
				}
			}()
			s.Step(last, nil)
		}()
	}
}

// TestRestoreRefusals: each kind of state that does not fit has its own error.
func TestRestoreRefusals(t *testing.T) {
	save := func(name string, workers int, common Common) []byte {
		b, err := newTestGate(t, name, workers, common).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	good := save("bsp", 2, Common{})
	newer := append([]byte{gateVersion + 1}, good[1:]...)
	for _, c := range []struct {
		what string
		data []byte
		want string
	}{
		{"empty", nil, "no header"},
		{"newer layout", newer, "layout 3, this program reads 2"},
		{"other scheme", save("asp", 2, Common{}), "of another scheme"},
		{"other workers", save("bsp", 3, Common{}), "3 workers and commit mode 0, this run has 2 and 0"},
		{"other fold", save("bsp", 2, Common{Fold: FoldArrival}), "resume with the same workers, fold and strict"},
		{"cut", good[:len(good)-1], "too short"},
		{"longer", append(good[:len(good):len(good)], 0), "bytes after its end"},
	} {
		s := newTestGate(t, "bsp", 2, Common{})
		err := s.UnmarshalBinary(c.data)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.what, err, c.want)
		}
		if err := s.UnmarshalBinary(good); err != nil {
			t.Errorf("%s: then the good state: %v", c.what, err)
		}
	}
}

// TestRestoreWithOtherBound: a resumed run may have another staleness and release; a pull delayed before is answered no
// later than its old key says.
func TestRestoreWithOtherBound(t *testing.T) {
	old := newTestGate(t, "ssp", 2, Common{}) // staleness 3, soft
	for i := range int64(4) {
		old.Step(Event{Kind: Pushed, Iter: i, Parts: 1, Samples: 1}, nil)
	}
	old.Step(Event{Kind: Wanted, Iter: 4}, nil)
	saved, _ := old.MarshalBinary()
	e, _ := All.Lookup("ssp")
	s, err := e.New(Env{Workers: 2, Shards: []int32{0}}, Common{}, &SSPParams{Staleness: 9, Release: ReleaseLazy})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.UnmarshalBinary(saved); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Step(Event{Kind: Pushed, Worker: 1, Owner: 1, Parts: 1, Samples: 1}, nil))
	if !strings.HasSuffix(got, "reply s0 w0 i4]") {
		t.Errorf("the next step of v decides %s; state: %v", got, s)
	}
}

// TestStepAllocatesNothing: in steady state a Step costs no allocation, so that a simulated run of thousands of
// workers does not feed the garbage collector.
func TestStepAllocatesNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		fold FoldOrder
	}{{"bsp", FoldRank}, {"bsp", FoldArrival}, {"asp", FoldArrival}, {"ssp", FoldArrival}, {"ssp", FoldRank},
		{"dssp", FoldArrival}, {"pssp", FoldArrival}, {"dsps", FoldArrival},
		{"drop", FoldRank}, {"drop", FoldArrival}, {"softsync", FoldArrival}, {"vap", FoldArrival},
		{"ringmaster", FoldArrival}, {"rennala", FoldArrival}, {"ringleader", FoldArrival}, {"quorum", FoldArrival}} {
		const workers = 4
		s := newTestGate(t, c.name, workers, Common{Fold: c.fold})
		out := make([]Decision, 0, 64)
		i := int64(0)
		iteration := func() {
			for w := range int32(workers) {
				out = s.Step(Event{Kind: Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: 1}, out[:0])
				out = s.Step(Event{Kind: Wanted, Worker: w, Iter: i + 1}, out[:0])
			}
			i++
		}
		iteration()
		if got := testing.AllocsPerRun(100, iteration); got != 0 {
			t.Errorf("%s fold %s: %v allocations per iteration of %d workers", c.name, c.fold, got, workers)
		}
	}
}

// TestStrings: one line each, and no kind without a name.
func TestStrings(t *testing.T) {
	for k := Offered; k <= Left; k++ {
		if strings.Contains(k.String(), "(") {
			t.Errorf("event kind %d has no name", k)
		}
	}
	for k := Fold; k <= WakeAt; k++ {
		if strings.Contains(k.String(), "(") {
			t.Errorf("decision kind %d has no name", k)
		}
	}
	for want, s := range map[string]fmt.Stringer{
		"pushed s1 w2 i3 samples=4 part=0/2 owner=w5":   Event{Kind: Pushed, Shard: 1, Worker: 2, Iter: 3, Samples: 4, Parts: 2, Owner: 5},
		"pushed s0 w0 i0 samples=1 inf=0.5":             Event{Kind: Pushed, Samples: 1, Parts: 1, NormInf: 0.5},
		"pushed s0 w0 i0 samples=1 inf=1 norms=3/2":     Event{Kind: Pushed, Samples: 1, Parts: 1, NormInf: 1, Norm2: 3, NormW: 2},
		"wanted s0 w1 c2":                               Event{Kind: Wanted, Worker: 1, Iter: 2},
		"left s0 w1":                                    Event{Kind: Left, Worker: 1},
		"alarm s0 at=5ns":                               Event{Kind: Alarm, At: 5},
		"sent s0 w0 i7":                                 Event{Kind: Sent, Iter: 7},
		"fold s0 w1 i2: pending = 1*push":               Decision{Kind: Fold, Worker: 1, Iter: 2, Dst: SlotPending, Weight: 1},
		"fold s0 w1 i2: pending = 0.5*pending + 1*push": Decision{Kind: Fold, Worker: 1, Iter: 2, Dst: SlotPending, Scale: 0.5, Weight: 1},
		"commit s0 i2: update 0.25*pending at lr*1, samples=4": Decision{Kind: Commit, Worker: NoWorker, Iter: 2,
			Dst: SlotParams, Src: SlotPending, Scale: 1, Weight: 0.25, Samples: 4},
		"grant s0 w1 i2 epoch=3": Decision{Kind: Grant, Worker: 1, Iter: 2, Epoch: 3},
		"wakeat s0 at=1s":        Decision{Kind: WakeAt, Worker: NoWorker, At: 1e9},
		"mean2":                  SlotMean + 2,
		"server":                 PerServer,
		"decision(99)":           DecisionKind(99),
	} {
		if s.String() != want {
			t.Errorf("%q, want %q", s.String(), want)
		}
	}
}

// TestEarlyPushesKeepOrder: with fold: arrival, pushes that landed before their iteration opened are folded in order of
// arrival, also when they are many.
func TestEarlyPushesKeepOrder(t *testing.T) {
	const workers = 64
	s := newTestGate(t, "bsp", workers, Common{Fold: FoldArrival})
	push := func(w int32, i int64) []Decision {
		return s.Step(Event{Kind: Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: 1}, nil)
	}
	for w := int32(workers - 1); w > 0; w-- {
		if ds := push(w, 1+int64(w%2)); len(ds) > 0 {
			t.Fatalf("early push of w%d: decided %v", w, ds)
		}
	}
	var got []string
	for _, ds := range [][]Decision{push(0, 0), push(0, 1)} {
		for _, d := range ds {
			if d.Kind == Fold && d.Worker != 0 {
				got = append(got, fmt.Sprintf("w%d i%d", d.Worker, d.Iter))
			}
		}
	}
	var want []string
	for _, odd := range []int{0, 1} {
		for w := workers - 1; w > 0; w-- {
			if w%2 == odd {
				want = append(want, fmt.Sprintf("w%d i%d", w, 1+odd))
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("folded %v, want %v", got, want)
	}
}

// TestRestoreBrokenState: state that decodes but violates an invariant of the gate is refused, and the error names the
// invariant.
func TestRestoreBrokenState(t *testing.T) {
	for _, c := range []struct {
		want  string
		fold  FoldOrder
		spoil func(g *gate)
	}{
		{"clock below v", FoldRank, func(g *gate) { g.v = 1 }},
		{"no worker at v", FoldRank, func(g *gate) { g.clock[0], g.clock[1], g.clock[2] = 2, 2, 2 }},
		{"should be folded", FoldRank, func(g *gate) { g.staged[0].samples = 0 }},
		{"should be folded", FoldRank, func(g *gate) { g.staged[0].iter = 7 }},
		{"staged twice", FoldRank, func(g *gate) { g.staged = append(g.staged, g.staged[0]) }},
		{"not within [0, 2]", FoldRank, func(g *gate) { g.staged[0].worker = 3 }},
		{"should be answered", FoldRank, func(g *gate) { g.parked[0].iter = 0 }},
		{"should be answered", FoldRank, func(g *gate) { g.parked[0].key = 1 }},
		{"should be answered", FoldRank, func(g *gate) { g.left[0] = true }},
		{"two open pulls", FoldRank, func(g *gate) { g.parked = append(g.parked, g.parked[0]) }},
		{"pending pushes", FoldRank, func(g *gate) { g.pendingPushes, g.pendingSamples = 1, 4 }},
		{"pending samples", FoldArrival, func(g *gate) { g.pendingSamples = 0 }},
		{"pending samples", FoldArrival, func(g *gate) { g.pendingPushes = 0 }},
		{"is not within", FoldRank, func(g *gate) { g.skipped = -1 }},
	} {
		g := newTestGate(t, "bsp", 3, Common{Fold: c.fold}).(*gate)
		g.Step(Event{Kind: Pushed, Parts: 1, Samples: 4}, nil)
		g.Step(Event{Kind: Wanted, Iter: 1}, nil)
		c.spoil(g)
		saved, err := g.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		err = newTestGate(t, "bsp", 3, Common{Fold: c.fold}).UnmarshalBinary(saved)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q; state: %v", err, c.want, g)
		}
	}
}

// TestRestoreBrokenTransit: impossible saved state of vap that decodes is refused, and the error names the fault.
func TestRestoreBrokenTransit(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(g *gate)
	}{
		{"computes and has left, or waits", func(g *gate) { g.left[1] = true }},
		{"computes and has left, or waits", func(g *gate) {
			g.transit.held = append(g.transit.held, heldPush{push: push{worker: 1, samples: 1}})
		}},
		{"should be committed, or that cannot have landed", func(g *gate) { g.transit.held[0].samples = 0 }},
		{"should be committed, or that cannot have landed", func(g *gate) { g.transit.held[0].iter = 2 }},
		{"two pushes of one worker", func(g *gate) { g.transit.held = append(g.transit.held, g.transit.held[0]) }},
		{"should be answered", func(g *gate) { g.transit.held = nil }},
		{"is not within", func(g *gate) { g.transit.held[0].norm = -1 }},
		{"is not within", func(g *gate) { g.transit.updates[0][0].norm = math.NaN() }},
		{"is not within", func(g *gate) { g.transit.updates[0][0].version = 9 }},
		{"more updates in transit", func(g *gate) {
			g.transit.version = 5000
			for v := range int64(2000) {
				g.transit.updates[0] = append(g.transit.updates[0], update{version: v + 2})
			}
		}},
		{"a staged push", func(g *gate) { g.staged = []push{{worker: 0, iter: 1, samples: 1}} }},
	} {
		made := newTestGate(t, "vap", 2, Common{})
		g := made.(*gate)
		g.Step(Event{Kind: Wanted, Worker: 1}, nil)
		for i := range int64(2) { // the second waits
			g.Step(Event{Kind: Pushed, Parts: 1, Iter: i, Samples: 4, NormInf: 9}, nil)
			g.Step(Event{Kind: Wanted, Iter: i + 1}, nil)
		}
		saved, err := g.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := newTestGate(t, "vap", 2, Common{}).UnmarshalBinary(saved); err != nil {
			t.Fatal(err)
		}
		c.spoil(g)
		if saved, err = g.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
		err = newTestGate(t, "vap", 2, Common{}).UnmarshalBinary(saved)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q; state: %v", err, c.want, g)
		}
	}
}

// TestRestoreWithOtherRange: dsps saves how uneven the workers are. A run that resumes with another range has the bound
// which that gives in the new range.
func TestRestoreWithOtherRange(t *testing.T) {
	e, _ := All.Lookup("dsps")
	dsps := func(most int64) Scheme {
		p := &DSPSParams{SMin: 0, SMax: most, Window: 1, Smoothing: 1, Release: ReleaseSoft}
		s, err := e.New(Env{Workers: 2, Shards: []int32{0}, Servers: 1}, Common{}, p)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	old := dsps(4)
	for w := range int32(2) {
		old.Step(Event{Kind: Wanted, Worker: w}, nil)
	}
	for w := range int32(2) { // 1 s and 1.5 s: alpha is a half
		old.Step(Event{Kind: Pushed, Worker: w, Owner: w, Parts: 1, Samples: 1, At: time.Second + time.Duration(w)*time.Second/2}, nil)
	}
	if want := "dsps v=1 clocks=1,1 s=2"; old.String() != want {
		t.Fatalf("%v, want %s", old, want)
	}
	saved, err := old.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	s := dsps(20)
	if err := s.UnmarshalBinary(saved); err != nil {
		t.Fatal(err)
	}
	if want := "dsps v=1 clocks=1,1 s=10"; s.String() != want {
		t.Errorf("resumed with s_max = 20: %v, want %s", s, want)
	}
}

// TestRestoreRefusesBrokenLimits: each kind of impossible state of a limit is refused, and the error names the fault.
func TestRestoreRefusesBrokenLimits(t *testing.T) {
	for _, c := range []struct {
		name, want string
		spoil      func(b []byte)
	}{
		{"dssp", "is not within [0, 2]", func(b []byte) { b[len(b)-16] = 3 }},
		{"dssp", "is not within", func(b []byte) { b[len(b)-1] = 0x80 }},                             // a grant below 0
		{"dsps", "is not within [0, 1]", func(b []byte) { b[len(b)-33], b[len(b)-34] = 0x7f, 0xf8 }}, // alpha is not a number
		{"vap", "computes on two versions", func(b []byte) { b[len(b)-56], b[len(b)-40] = 0, 0 }},    // both are worker 0
		{"vap", "is not within [0, 1]", func(b []byte) { b[len(b)-40] = 2 }},                         // a worker that computes
		{"vap", "is not within", func(b []byte) { b[len(b)-8] = 9 }},                                 // more pushes that wait than bytes
		{"dsps", "is not within [-1,", func(b []byte) { b[len(b)-1], b[len(b)-2] = 0x7f, 0xf0 }},     // an infinite mean
	} {
		s := newTestGate(t, c.name, 2, Common{})
		for w := range int32(2) {
			s.Step(Event{Kind: Wanted, Worker: w}, nil)
		}
		saved, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		c.spoil(saved)
		if err := newTestGate(t, c.name, 2, Common{}).UnmarshalBinary(saved); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
}
