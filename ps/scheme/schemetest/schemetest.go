// Package schemetest is the conformance suite of the schemes: the guarantees that the driver of any scheme relies on,
// checked on random runs of one shard. Each failure shrinks to a short run.
package schemetest

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
)

// Run checks an entry with every setting of Variants:
//
//   - each push that lands is folded or dropped exactly once, and each folded push is committed
//   - each pull is answered exactly once or vanishes when its worker leaves; no other worker is answered
//   - each step of v is published once to each subscribed worker, where the entry publishes, and nothing else is
//   - a pull is answered only while c - v is within LeadMax
//   - whenever all workers have left, nothing is staged or pending: a shard may change its scheme there
//   - every worker reaches the last iteration: with uneven speeds, a straggler, and workers that leave, come back, skip
//     iterations or push nothing
//   - of a scheme that grants: a grant answers an announcement, one grant is out at a time, only that one is revoked, and a
//     worker without a grant never pushes
//   - the first fold after a commit overwrites the pending sums, later ones add
//   - the same events give the same decisions, also after the state was saved and restored half-way
//   - the memory of a scheme that all workers have left, with clocks and version, is all that two new instances need to decide
//     alike
//   - damaged state and damaged memory are refused
func Run(t *testing.T, e scheme.Entry) {
	if err := e.Complete(); err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	variants := Variants(e)
	if len(variants) == 0 {
		t.Fatalf("%s refuses every setting that schemetest tries", e.Name)
	}
	if text := variants[0].New(scheme.Env{Workers: 2, Shards: []int32{Shard}, Servers: 1}).String(); !strings.HasPrefix(text, e.Name+" ") {
		t.Fatalf("the state of %s begins with another name: %q", e.Name, text)
	}
	for _, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			t.Run("books", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { checkBooks(rt, v) }) })
			t.Run("twins", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { checkTwins(rt, v) }) })
			t.Run("memory", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { checkMemory(rt, v) }) })
			t.Run("damage", func(t *testing.T) { rapid.Check(t, func(rt *rapid.T) { checkDamage(rt, v) }) })
		})
	}
}

func checkBooks(t *rapid.T, v Variant) {
	env := DrawEnv(t)
	s := v.New(env)
	a := newAudit(v, env)
	d := Driver{Env: env, Quit: rapid.IntRange(0, 3).Draw(t, "quit") == 0, Grants: v.Grants(), Norms: v.DrawNorms(t),
		Subscribed: v.drawSubscribed(t), Bound: v.bound(), See: func(ev scheme.Event, decisions []scheme.Decision) {
			if err := a.see(ev, decisions); err != nil {
				t.Fatalf("%v; state: %v", err, s)
			}
		}}
	d.Run(t, s)
	if err := a.end(); err != nil {
		t.Fatalf("when everyone had left: %v; state: %v", err, s)
	}
}

// checkTwins runs two more instances on the same events: one from the start, and one restored from the state that was
// saved at a drawn event.
func checkTwins(t *rapid.T, v Variant) {
	env := DrawEnv(t)
	s, second := v.New(env), v.New(env)
	var restored scheme.Scheme
	saveAt := rapid.IntRange(1, 60).Draw(t, "save at event")
	events := 0
	d := Driver{Env: env, Grants: v.Grants(), Norms: v.DrawNorms(t), Subscribed: v.drawSubscribed(t), Bound: v.bound(),
		See: func(ev scheme.Event, decisions []scheme.Decision) {
			same(t, "a second instance", ev, decisions, second.Step(ev, nil))
			if restored != nil {
				same(t, "the restored instance", ev, decisions, restored.Step(ev, nil))
			}
			if events++; events == saveAt {
				restored = v.New(env)
				restore(t, s, restored)
			}
		}}
	d.Run(t, s)
}

func same(t *rapid.T, who string, ev scheme.Event, want, got []scheme.Decision) {
	if !slices.Equal(want, got) {
		t.Fatalf("%v: %s decided\n%v\ninstead of\n%v", ev, who, got, want)
	}
}

func restore(t *rapid.T, from, to scheme.Scheme) {
	saved, err := from.MarshalBinary()
	if err != nil {
		t.Fatalf("save: %v", err)
	}
	if err := to.UnmarshalBinary(saved); err != nil {
		t.Fatalf("restore: %v; state: %v", err, from)
	}
	if from.String() != to.String() {
		t.Fatalf("restored %v from %v", to, from)
	}
	again, err := to.MarshalBinary()
	if err != nil || !bytes.Equal(saved, again) {
		t.Fatalf("saving the restored state gives other bytes (%v): %x, was %x", err, again, saved)
	}
}

// checkDamage changes, cuts or lengthens saved state. State that is accepted must save to the very bytes it was read
// from. State that is refused must leave the instance unchanged.
func checkDamage(t *rapid.T, v Variant) {
	env := DrawEnv(t)
	s := v.New(env)
	states := [][]byte{}
	d := Driver{Env: env, Grants: v.Grants(), Norms: v.DrawNorms(t), Subscribed: v.drawSubscribed(t), Bound: v.bound(),
		See: func(scheme.Event, []scheme.Decision) {
			b, err := s.MarshalBinary()
			if err != nil {
				t.Fatalf("save: %v", err)
			}
			states = append(states, b)
		}}
	d.Run(t, s)
	if len(states) == 0 {
		return
	}
	b := slices.Clone(rapid.SampledFrom(states).Draw(t, "state"))
	switch rapid.IntRange(0, 2).Draw(t, "damage") {
	case 0:
		b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	case 1:
		b = b[:rapid.IntRange(0, len(b)-1).Draw(t, "cut to")]
	case 2:
		b = append(b, rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "more")...)
	}
	victim := v.New(env)
	before := victim.String()
	if err := victim.UnmarshalBinary(b); err != nil {
		if victim.String() != before {
			t.Fatalf("refused (%v) but changed the state to %v", err, victim)
		}
		return
	}
	again, err := victim.MarshalBinary()
	if err != nil || !reflect.DeepEqual(again, b) {
		t.Fatalf("accepted damaged state and saves it as other bytes (%v): %x, was %x", err, again, b)
	}
}
