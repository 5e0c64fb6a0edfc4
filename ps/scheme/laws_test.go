package scheme_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// setting makes a variant by name; keys are as in Variant.String.
func setting(t *testing.T, name, keys string) schemetest.Variant {
	t.Helper()
	e, ok := scheme.All.Lookup(name)
	if !ok {
		t.Fatalf("no scheme %s", name)
	}
	v := schemetest.Variant{Entry: e, Common: scheme.Common{Fold: e.Fold}, Params: e.Params()}
	for _, word := range strings.Fields(keys) {
		key, value, _ := strings.Cut(word, "=")
		if key == "fold" {
			v.Common.Fold = scheme.FoldOrder(value)
		} else if err := scheme.SetKey(v.Params, key, value); err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		if !strings.Contains(v.String()+" ", word+" ") {
			t.Fatalf("setting %q became %q", keys, v)
		}
	}
	return v
}

var releases = []string{"soft", "lazy", "block"}

func replies(ds []scheme.Decision) []scheme.Decision {
	return slices.DeleteFunc(slices.Clone(ds), func(d scheme.Decision) bool { return d.Kind != scheme.Reply })
}

// law demands that b decides like a on every history of a: all decisions, or the replies alone.
func law(t *testing.T, a, b schemetest.Variant, repliesOnly bool) {
	t.Helper()
	name := fmt.Sprintf("%s %v = %s %v", a.Entry.Name, a, b.Entry.Name, b)
	t.Run(name, func(t *testing.T) {
		rapid.Check(t, func(rt *rapid.T) {
			env := schemetest.DrawEnv(rt)
			history, answers := record(rt, env, a.New(env), false)
			other := b.New(env)
			for k, ev := range history {
				want, got := answers[k], other.Step(ev, nil)
				if repliesOnly {
					want, got = replies(want), replies(got)
				}
				if !slices.Equal(got, want) {
					rt.Fatalf("event %d, %v: %s decides\n%v\n%s\n%v", k, ev, a.Entry.Name, want, b.Entry.Name, got)
				}
			}
		})
	})
}

// TestSSP0IsBSP: clock convention, consequence 1, first half.
func TestSSP0IsBSP(t *testing.T) {
	bsp := setting(t, "bsp", "fold=rank strict=true release=soft")
	for _, release := range releases {
		law(t, bsp, setting(t, "ssp", "fold=rank staleness=0 release="+release), false)
		law(t, setting(t, "bsp", "fold=rank strict=true release="+release), bsp, false)
		law(t, bsp, setting(t, "ssp", "fold=arrival staleness=0 release="+release), true)
		law(t, bsp, setting(t, "bsp", "fold=arrival strict=true release="+release), true)
		law(t, bsp, setting(t, "bsp", "fold=arrival strict=false release="+release), true)
		law(t, setting(t, "bsp", "fold=arrival strict=false release="+release),
			setting(t, "ssp", "fold=arrival staleness=0 release="+release), false)
	}
}

// TestDropOfNoneIsBSP: Sync-opt [A], invariants: without backup workers it is BSP: all decisions, in both fold orders.
func TestDropOfNoneIsBSP(t *testing.T) {
	for _, fold := range []string{"rank", "arrival"} {
		for _, required := range []string{"0", "6", "1000000"} { // DrawEnv has up to 6 workers
			law(t, setting(t, "bsp", "fold="+fold+" strict=true release=soft"), setting(t, "drop", "fold="+fold+" required="+required), false)
		}
	}
}

// TestSSPWithoutBoundIsASP: clock convention, consequence 1, second half.
func TestSSPWithoutBoundIsASP(t *testing.T) {
	for _, release := range releases {
		law(t, setting(t, "asp", "fold=arrival"),
			setting(t, "ssp", "fold=arrival staleness=1000000000000 release="+release), false)
	}
}

// TestRingleaderWithABoundIsSSP: with a bound the pulls of ringleader are those of ssp.
func TestRingleaderWithABoundIsSSP(t *testing.T) {
	for _, release := range releases {
		for _, s := range []int{0, 2} {
			keys := fmt.Sprintf("fold=arrival staleness=%d release=%s", s, release)
			law(t, setting(t, "ssp", keys), setting(t, "ringleader", keys), true)
		}
	}
}

// bosen is the row-request side of a Bösen server. A pull at clock c needs rows of clock c - s. It waits in the queue
// of that need until the server clock, the smallest of all, has reached it. A server clock releases every queue at or
// below it, not only the one equal to it (the released code strands the others).
type bosen struct {
	staleness int64
	clock     map[int32]int64
	left      map[int32]bool
	v         int64
	queue     map[int64][]int32
}

// answer returns the workers answered at ev.
func (b *bosen) answer(ev scheme.Event) (answered []int32) {
	switch ev.Kind {
	case scheme.Pushed:
		b.clock[ev.Worker] = ev.Iter + 1
	case scheme.Left:
		b.left[ev.Worker] = true
		for need, waiting := range b.queue {
			b.queue[need] = slices.DeleteFunc(waiting, func(w int32) bool { return w == ev.Worker })
		}
	case scheme.Wanted:
		need := max(0, ev.Iter-b.staleness)
		if b.v >= need {
			return []int32{ev.Worker}
		}
		b.queue[need] = append(b.queue[need], ev.Worker)
		return nil
	}
	low := int64(-1)
	for w, c := range b.clock {
		if !b.left[w] && (low < 0 || c < low) {
			low = c
		}
	}
	b.v = max(b.v, low)
	for need, waiting := range b.queue {
		if need <= b.v {
			answered = append(answered, waiting...)
			delete(b.queue, need)
		}
	}
	slices.Sort(answered)
	return answered
}

// TestBosenGate: Bösen's gate (Bösen, SSP as implemented [C]) answers the same pulls at the same events as the
// FluentPS gate with the soft barrier does.
func TestBosenGate(t *testing.T) {
	for _, staleness := range []int64{0, 1, 3} {
		v := setting(t, "ssp", fmt.Sprintf("fold=arrival staleness=%d release=soft", staleness))
		rapid.Check(t, func(rt *rapid.T) {
			env := scheme.Env{Workers: rapid.IntRange(1, 6).Draw(rt, "workers"), Shards: []int32{schemetest.Shard}, Servers: 1}
			b := bosen{staleness: staleness, clock: map[int32]int64{}, left: map[int32]bool{}, queue: map[int64][]int32{}}
			for w := range int32(env.Workers) {
				b.clock[w] = 0
			}
			history, answers := record(rt, env, v.New(env), true)
			for k, ev := range history {
				var got []int32
				for _, d := range replies(answers[k]) {
					got = append(got, d.Worker)
				}
				slices.Sort(got)
				if want := b.answer(ev); !slices.Equal(got, want) {
					rt.Fatalf("event %d, %v: the gate answers %v, Bösen %v", k, ev, got, want)
				}
			}
		})
	}
}
