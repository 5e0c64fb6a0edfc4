package schemetest

import (
	"bytes"
	"slices"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
)

// checkMemory lets all workers leave, and continues with two new instances as a resumed run does. They are told the
// first instance's memory, the clocks and the version. They must return the same memory, and decide alike on the same
// events. Memory that is cut or too long must be refused and must change nothing.
func checkMemory(t *rapid.T, v Variant) {
	env := DrawEnv(t)
	s := v.New(env)
	clocks := make([]int64, env.Workers)
	for w, c := range env.Clocks {
		clocks[w] = max(0, c)
	}
	versions := env.Start
	d := Driver{Env: env, Grants: v.Grants(), Norms: v.DrawNorms(t), Subscribed: v.drawSubscribed(t), Bound: v.bound(),
		See: func(ev scheme.Event, decisions []scheme.Decision) {
			if ev.Kind == scheme.Pushed {
				clocks[ev.Worker] = max(clocks[ev.Worker], ev.Iter+1)
			}
			for _, one := range decisions {
				if one.Kind == scheme.Commit {
					versions++
				}
			}
		}}
	d.Run(t, s)
	l, learns := s.(scheme.Learning)
	if !learns {
		return
	}
	memory := l.Memory()
	if memory == nil {
		return
	}
	top := slices.Max(clocks) // as under schemes where workers may be behind
	for w := range clocks {
		clocks[w] = top
	}
	env.Clocks, env.Start = clocks, versions
	one, other := v.New(env), v.New(env)
	blank := one.(scheme.Learning).Memory()
	damaged := append(slices.Clone(memory), rapid.SliceOfN(rapid.Byte(), 1, 16).Draw(t, "more")...)
	if rapid.Bool().Draw(t, "cut") {
		damaged = memory[:rapid.IntRange(0, len(memory)-1).Draw(t, "to")]
	}
	if err := one.(scheme.Learning).Recall(damaged); err == nil || !bytes.Equal(one.(scheme.Learning).Memory(), blank) {
		t.Fatalf("recalled %d bytes of a memory of %d: %v", len(damaged), len(memory), err)
	}
	for _, to := range []scheme.Scheme{one, other} {
		if err := to.(scheme.Learning).Recall(memory); err != nil {
			t.Fatalf("recall: %v; state: %v", err, to)
		}
		if again := to.(scheme.Learning).Memory(); !bytes.Equal(again, memory) {
			t.Fatalf("its memory is %x, was %x", again, memory)
		}
	}
	d.alarms = nil
	d.Env, d.See = env, func(ev scheme.Event, decisions []scheme.Decision) {
		same(t, "the other instance", ev, decisions, other.Step(ev, nil))
	}
	d.Run(t, one)
}
