package tasks

import (
	"slices"

	"fluentps/internal/core"
)

// landed adds a part to its iteration. A part that lands twice has the same samples.
func (m *model) landed(by int32, t core.Task, end int32) {
	i := modelIter{t.Owner, t.Iter}
	if m.out[t.Owner] {
		return
	}
	have := m.parts[i]
	if have == nil {
		have = map[int32][2]int32{}
		m.parts[i] = have
		m.by[i] = slices.Repeat([]int32{-1}, m.batches[t.Owner])
	}
	samples := [2]int32{t.From, end}
	if old, isThere := have[t.Part]; isThere {
		if old != samples {
			m.fail("part %d of %v has samples %v and %v", t.Part, i, old, samples)
		}
		return
	}
	have[t.Part] = samples
	for s := t.From; s < end; s++ {
		if m.by[i][s] >= 0 {
			m.fail("sample %d of %v is in two parts: %v", s, i, have)
		}
		m.by[i][s] = by
	}
	if t.Part == 0 {
		if by != t.Owner {
			m.fail("worker %d computes the own part of %v", by, i)
		}
		m.count[i] = t.Parts
	}
	if len(have) != int(m.count[i]) {
		return
	}
	if s := slices.Index(m.by[i], -1); s >= 0 || t.Iter != m.done[t.Owner] {
		m.fail("%v is complete after %d, and sample %d is missing: %v", i, m.done[t.Owner], s, have)
	}
	m.done[t.Owner]++
	m.openGate()
}

// openGate answers whoever may go on.
func (m *model) openGate() {
	least := int64(1 << 60)
	for w := range m.done {
		if !m.out[w] {
			least = min(least, m.done[w])
		}
	}
	for i, w := range m.workers {
		next := m.done[i] + 1
		if next <= 1 || m.out[i] || m.done[i]-least > m.ahead {
			continue
		}
		m.after(m.delay("reply"), func() { m.replied(w, next) })
	}
}

func (m *model) replied(w *modelWorker, upTo int64) {
	w.reply = max(w.reply, upTo)
	m.advance(w)
}

func (m *model) gone(w int32) {
	m.out[w] = true
	m.openGate()
}

func (m *model) hearGone(w *modelWorker, gone int32) {
	w.knowsGone[gone] = true
	m.tell(w, core.WorkEvent{Kind: core.Gone, Task: core.Task{Owner: gone}})
}

// lose loses a worker. Its pushes and messages that are on their way may still arrive, and after the others know of the loss, too.
func (m *model) lose(w *modelWorker) {
	if w.left || w.lost {
		return
	}
	w.lost = true
	if m.lost != nil {
		m.lost(w.me)
	}
	m.after(m.delay("reply"), func() { m.gone(w.me) })
	for _, k := range m.workers {
		if k != w {
			m.after(m.delay("message"), func() {
				if !k.lost {
					m.hearGone(k, w.me)
					m.advance(k)
				}
			})
		}
	}
}
