package scheme

import (
	"testing"
	"time"
)

// recallers are the schemes with a memory, with keys under which they have one.
var recallers = []struct {
	name string
	set  func(Params)
}{
	{"pssp", func(p Params) { p.(*PSSPParams).Mode, p.(*PSSPParams).Significance = PSSPDynamic, true }},
	{"dssp", func(Params) {}},
	{"dsps", func(Params) {}},
	{"r2sp", func(p Params) { p.(*R2SPParams).Profile = 1 }}, // slots are dealt in the second round
	{"quorum", func(Params) {}},
}

// recaller makes an instance for three workers without a memory.
func recaller(t testing.TB, which uint8) Scheme {
	t.Helper()
	r := recallers[int(which)%len(recallers)]
	e, ok := All.Lookup(r.name)
	if !ok {
		t.Fatalf("there is no %s", r.name)
	}
	p := e.Params()
	r.set(p)
	s, err := e.New(Env{Workers: 3, Shards: []int32{0}, Servers: 1}, Common{}, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// inStep lets all workers compute some iterations in step, and fails unless every pull is answered.
func inStep(t testing.TB, s Scheme) {
	t.Helper()
	_, turns := s.(*rotation)
	answered := 0
	tell := func(kind EventKind, w int32, iter int64, at time.Duration) {
		for _, d := range s.Step(Event{Kind: kind, Worker: w, Owner: w, Parts: 1, Samples: 8, Iter: iter, Norm2: 1,
			NormInf: 1, NormW: 2, At: at}, nil) {
			if d.Kind == Reply {
				answered++
			}
		}
	}
	const n = 4
	for i := range int64(n) {
		for w := range int32(3) {
			at := time.Duration(i)*100*time.Millisecond + time.Duration(w)*20*time.Millisecond
			tell(Wanted, w, i, at)
			if turns {
				tell(Ready, w, i, at+10*time.Millisecond)
			}
			tell(Pushed, w, i, at+12*time.Millisecond)
			if turns {
				tell(Sent, w, i+1, at+13*time.Millisecond)
			}
		}
	}
	if answered != 3*n {
		t.Fatalf("%d of %d pulls were answered: %v", answered, 3*n, s)
	}
}

// FuzzRecall: the memory in a checkpoint is either refused, or recalled exactly; the scheme continues with it and can
// be saved.
func FuzzRecall(f *testing.F) {
	for i := range recallers {
		s := recaller(f, uint8(i))
		f.Add(uint8(i), s.(Learning).Memory())
		inStep(f, s)
		f.Add(uint8(i), s.(Learning).Memory())
	}
	f.Fuzz(func(t *testing.T, which uint8, memory []byte) {
		s := recaller(t, which)
		before := string(s.(Learning).Memory())
		err := s.(Learning).Recall(memory)
		after := string(s.(Learning).Memory())
		if err != nil {
			if after != before {
				t.Fatal("a refused memory was recalled")
			}
			return
		}
		if after != string(memory) {
			t.Fatalf("recalled %q, and its memory is %q", memory, after)
		}
		inStep(t, s)
		saved, err := s.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := recaller(t, which).UnmarshalBinary(saved); err != nil {
			t.Fatalf("after %q it reaches a state that cannot be read: %v", memory, err)
		}
	})
}
