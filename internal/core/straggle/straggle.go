// Package straggle finds the workers that take longer than the others, by the times at which their pushes arrive.
package straggle

import (
	"slices"
	"time"

	"fluentps/ps/scheme"
)

// Straggler is a worker that takes longer than the others.
type Straggler struct {
	Worker int32 // -1: no worker does
	Times  float64
}

// Detector finds stragglers by the times at which the workers' pushes of the lead shard arrive. Between two pushes a
// worker computes, or waits for replies. The push says how long it waited, so the rest is its own time. That holds
// under every scheme: under bsp all pushes arrive at the same rate, but fast workers wait.
type Detector struct {
	await  scheme.Await
	of     []watched
	own    []time.Duration // of the last iteration of each worker that is known, ascending
	calmed int             // workers that are calm
}

// watched is what the detector knows of one worker.
type watched struct {
	next       int64         // the iteration after the last one that was pushed; 0: none was
	at         time.Duration // when that push arrived
	own        time.Duration // what the iteration took without waiting; -1: unknown
	slow, fine int64         // iterations in a row in which it straggled, or did not; one of them is 0
}

// Start looks for something new. Counts start at 0; what iterations took stays known.
func (d *Detector) Start(a scheme.Await, workers int) {
	if d.await, d.calmed = a, 0; d.of == nil {
		d.of = make([]watched, workers)
		for w := range d.of {
			d.of[w].own = -1
		}
	}
	for w := range d.of {
		d.of[w].slow, d.of[w].fine = 0, 0
	}
}

// Pushed records a push.
func (d *Detector) Pushed(w int32, iter int64, at, blocked time.Duration) {
	k := &d.of[w]
	if k.next == iter && iter > 0 {
		d.forget(k.own)
		k.own = max(0, at-k.at-blocked)
		i, _ := slices.BinarySearch(d.own, k.own)
		d.own = slices.Insert(d.own, i, k.own)
		d.judge(k)
	}
	k.next, k.at = iter+1, at
}

// judge counts an iteration as slow or not, if the median means something.
func (d *Detector) judge(k *watched) {
	if len(d.own) < scheme.AwaitWorkersMin {
		return
	}
	if m := d.median(); m > 0 && float64(k.own) > d.await.Factor*float64(m) {
		if d.isCalm(k) {
			d.calmed--
		}
		k.slow, k.fine = k.slow+1, 0
		return
	}
	was := d.isCalm(k)
	if k.slow, k.fine = 0, k.fine+1; !was && d.isCalm(k) {
		d.calmed++
	}
}

// median is the lower of two in the middle: if half of the workers straggle, it is that of the others.
func (d *Detector) median() time.Duration { return d.own[(len(d.own)-1)/2] }

func (d *Detector) isCalm(k *watched) bool { return k.fine >= d.await.Rounds && d.await.Rounds > 0 }

// Left forgets a worker.
func (d *Detector) Left(w int32) {
	if d.of == nil {
		return
	}
	k := &d.of[w]
	if d.isCalm(k) {
		d.calmed--
	}
	d.forget(k.own)
	*k = watched{own: -1}
}

func (d *Detector) forget(own time.Duration) {
	if i, known := slices.BinarySearch(d.own, own); known {
		d.own = slices.Delete(d.own, i, i+1)
	}
}

// Verdict says whether what is awaited has happened with the last push of worker w. present is the number of workers in
// the run.
func (d *Detector) Verdict(w int32, present int) (why Straggler, happened bool) {
	k, none := &d.of[w], Straggler{Worker: -1}
	switch {
	case len(d.own) < scheme.AwaitWorkersMin:
	case d.await.Straggler == scheme.StragglerGone:
		return none, d.calmed == present
	case d.await.Straggler == scheme.StragglerShows && k.slow >= d.await.Rounds:
		return Straggler{w, float64(k.own) / float64(d.median())}, true
	}
	return none, false
}
