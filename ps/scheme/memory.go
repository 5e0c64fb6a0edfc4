package scheme

import (
	"fmt"
	"time"
)

// Learning is a scheme that may know more than clocks and version tell, which its constructor takes: what it
// measured of its workers, and what they pushed last. That outlives a checkpoint. It is asked for when everybody has left.
//
// Of the others clocks and version tell all: nothing is staged, pending or in transit then, dynsgd, and softsync where it
// weighs by staleness, count the versions that there were and begin with the next one as with the first, and essp's workers subscribe anew.
type Learning interface {
	Memory() []byte             // nil: there is none
	Recall(memory []byte) error // into a new instance for as many workers; after an error that is as before
}

// Memory implements Learning.
func (g *gate) Memory() []byte {
	if !g.limit.lasts() {
		return nil
	}
	return g.limit.save(append([]byte{gateVersion, byte(len(g.name))}, g.name...))
}

// Recall implements Learning.
func (g *gate) Recall(memory []byte) error {
	head := len(g.name) + 2
	if len(memory) < head || memory[0] != gateVersion || int(memory[1]) != len(g.name) || string(memory[2:head]) != g.name || !g.limit.lasts() {
		return fmt.Errorf("%s: the memory of %d bytes is of another scheme, or of another layout than %d; resume with the scheme and program that wrote it", g.name, len(memory), gateVersion)
	}
	d := decoder{rest: memory[head:]}
	l := g.limit.load(&d)
	if len(d.rest) != 0 {
		d.fail("bytes after its end")
	}
	if d.bad != "" {
		return fmt.Errorf("%s: the memory is damaged, or of other workers or keys: %s", g.name, d.bad)
	}
	g.limit = l
	return nil
}

// lasting lists what a rotation remembers: rounds, and of each worker what its turns took. The slots are dealt anew from
// that, as soon as a round begins.
func (r *rotation) lasting() (list []number) {
	add := func(get func() int64, set func(int64)) {
		list = append(list, number{get, set, 0, maxClock})
	}
	add(func() int64 { return r.rounds }, func(x int64) { r.rounds = x })
	for i := range r.workers {
		w := &r.workers[i]
		for _, p := range []*int64{&w.samples, &w.measured} {
			add(func() int64 { return *p }, func(x int64) { *p = x })
		}
		for _, p := range []*time.Duration{&w.cycle, &w.push, &w.pull, &w.alone} {
			add(func() int64 { return int64(*p) }, func(x int64) { *p = time.Duration(x) })
		}
	}
	return list
}

// Memory implements Learning.
func (r *rotation) Memory() []byte { return saveNumbers(r.lasting()) }

// Recall implements Learning.
func (r *rotation) Recall(memory []byte) error {
	n := r.clone()
	bad, err := loadNumbers("memory", memory, n.lasting())
	if err != nil {
		return err
	}
	if bad != "" {
		return fmt.Errorf("r2sp: the memory is damaged, or of other workers or keys: %s", bad)
	}
	*r = *n
	return nil
}
