package scheme

import (
	"fmt"
	"time"
)

// Learning is a scheme that may have state which its constructor cannot derive from clocks and version: what it
// measured of its workers, or what they pushed last. A checkpoint keeps that state as the scheme's memory. Memory is
// called when all workers have left.
//
// The other schemes need none. Nothing is staged, pending or in transit then. dynsgd, and softsync with weights by
// staleness, count versions and treat the next one as the first. essp's workers subscribe anew.
type Learning interface {
	Memory() []byte             // nil: there is none
	Recall(memory []byte) error // into a new instance for the same number of workers; on an error the instance is unchanged
}

// Memory implements Learning.
func (g *gate) Memory() []byte {
	if !g.limit.hasMemory() {
		return nil
	}
	head := append([]byte{gateVersion, byte(len(g.name))}, g.name...)
	if g.rounds != nil {
		return g.rounds.saveLags(head)
	}
	return g.limit.save(head)
}

// Recall implements Learning.
func (g *gate) Recall(memory []byte) error {
	head := len(g.name) + 2
	if len(memory) < head || memory[0] != gateVersion || int(memory[1]) != len(g.name) ||
		string(memory[2:head]) != g.name || !g.limit.hasMemory() {
		return fmt.Errorf("%s: the memory of %d bytes is of another scheme, or of another layout than %d; resume with "+
			"the scheme and program that wrote it", g.name, len(memory), gateVersion)
	}
	d := decoder{rest: memory[head:]}
	load := g.limit.load
	if g.rounds != nil {
		load = g.rounds.loadLags
	}
	l := load(&d)
	if len(d.rest) != 0 {
		d.fail("bytes after its end")
	}
	if d.bad != "" {
		return fmt.Errorf("%s: the memory is damaged, or of other workers or keys: %s", g.name, d.bad)
	}
	g.limit = l
	if g.rounds != nil {
		g.rounds = l.(*rounds)
	}
	return nil
}

// memoryNumbers lists the memory of a rotation: the rounds, and the times that each worker's turns took. From these it
// deals the slots anew as soon as a round begins.
func (r *rotation) memoryNumbers() (list []number) {
	add := func(get func() int64, set func(int64)) {
		list = append(list, number{get, set, 0, maxClock})
	}
	add(func() int64 { return r.rounds }, func(x int64) { r.rounds = x })
	for i := range r.workers {
		w := &r.workers[i]
		for _, p := range []*int64{&w.samples, &w.measured} {
			add(func() int64 { return *p }, func(x int64) { *p = x })
		}
		for _, p := range []*time.Duration{&w.cycle, &w.pull, &w.pushMin} {
			add(func() int64 { return int64(*p) }, func(x int64) { *p = time.Duration(x) })
		}
	}
	return list
}

// Memory implements Learning.
func (r *rotation) Memory() []byte { return saveNumbers(r.memoryNumbers()) }

// Recall implements Learning.
func (r *rotation) Recall(memory []byte) error {
	n := r.clone()
	bad, err := loadNumbers("memory", memory, n.memoryNumbers())
	if err != nil {
		return err
	}
	if bad != "" {
		return fmt.Errorf("r2sp: the memory is damaged, or of other workers or keys: %s", bad)
	}
	*r = *n
	return nil
}
