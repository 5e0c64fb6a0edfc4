package real

import (
	"fmt"
	"slices"
	"time"
)

// paramserv is a second implementation of the parameter server of SystemDS and of its workers, a loop over pushes. It is written from
// the description of theirs alone [C]. With the simulator it shares the kernels of the model, the rows of a batch and
// the time that a batch takes.
//
//	push(n, g)   BSP  acc += g; when all have pushed: model = agg(model, acc), and all get it
//	             ASP  model = agg(model, g), and n gets it
//	             SBP  if straggling[n] > 0: g is discarded, n gets the model, straggling[n] -= 1
//	                  else as BSP, but N - backups pushes suffice, straggling[m] += 1 for each other m, and only those that pushed get it
//	worker       per batch: pull; push upd(model, batch)                                                                   BATCH
//	             pull; for each batch: g = upd(local, batch), acc += g, local = agg(local, g) but for the last; push acc   EPOCH
//	             EPOCH with every nbatches batches, and what is left at the end of an epoch                                NBATCHES
//	modelAvg     workers apply the last batch, too, and push local; the model is the sum of local / N, of local / (N - backups) under SBP
type paramserv struct {
	utype, freq       string
	modelAvg          bool
	nbatches, backups int
	lr, momentum      float64 // of agg
	epochs            int     // of each worker; 0: no limit
	// the run ends with so many updates of the model; 0: when no worker computes any more
	updates int
	batches []int                                          // by worker: batches of an epoch
	rows    func(worker, batch int) []int32                // of a worker's batch, counted from the start of the run
	upd     func(w []float64, worker, batch int) []float64 // the mean gradient of these rows
	takes   func(worker, batch int) time.Duration

	model      psModel
	acc        psModel
	finished   []bool
	straggling []int
	workers    []psWorker
	made       int // updates
	// What tests ask.
	used, discarded []int // pushes, by worker
	missedMost      int   // the largest straggling
}

// psModel is a model as a list: the parameters, and what agg keeps beside them.
type psModel struct{ w, v []float64 }

type psWorker struct {
	pulled    psModel
	group     int           // batches that it computes before it pushes
	done      int           // batches that it has pushed
	at        time.Duration // when it pushes
	computing bool
}

func newParamserv(p paramserv, initial []float32) *paramserv {
	n := len(p.batches)
	p.model = psModel{make([]float64, len(initial)), make([]float64, len(initial))}
	for i, x := range initial {
		p.model.w[i] = float64(x)
	}
	p.acc = p.zero()
	p.finished, p.straggling, p.workers, p.used, p.discarded = make([]bool, n), make([]int, n), make([]psWorker, n),
		make([]int, n), make([]int, n)
	return &p
}

func (p *paramserv) zero() psModel {
	return psModel{make([]float64, len(p.model.w)), make([]float64, len(p.model.w))}
}

func (m psModel) clone() psModel { return psModel{slices.Clone(m.w), slices.Clone(m.v)} }

func (m psModel) add(x psModel, weight float64) {
	for i := range m.w {
		m.w[i] += weight * x.w[i]
		m.v[i] += weight * x.v[i]
	}
}

// agg is sgd with momentum; its velocity is in the list.
func (p *paramserv) agg(m psModel, g []float64) psModel {
	m = m.clone()
	for i := range m.w {
		m.v[i] = p.momentum*m.v[i] - p.lr*g[i]
		m.w[i] += m.v[i]
	}
	return m
}

// run returns the workers that wait for an answer that will never come.
func (p *paramserv) run() (stuck []int, err error) {
	switch {
	case p.utype == "SSP":
		return nil, fmt.Errorf("update type SSP is not supported")
	case p.utype == "ASP" && p.modelAvg:
		return nil, fmt.Errorf("modelAvg is not implemented for ASP")
	}
	for n := range p.workers {
		p.send(n, 0)
	}
	for p.updates == 0 || p.made < p.updates {
		next := -1
		for n := range p.workers {
			if w := &p.workers[n]; w.computing && (next < 0 || w.at < p.workers[next].at) {
				next = n
			} else if w.computing && p.utype != "BSP" && w.at == p.workers[next].at {
				return nil, fmt.Errorf("workers %d and %d push at %v, and the description does not say who is first", next, n, w.at)
			}
		}
		if next < 0 {
			break
		}
		p.work(next)
	}
	for n := range p.workers {
		if p.epochs > 0 && p.workers[n].done < p.epochs*p.batches[n] {
			stuck = append(stuck, n)
		}
	}
	return stuck, nil
}

// send gives worker n the model.
func (p *paramserv) send(n int, now time.Duration) {
	w := &p.workers[n]
	if p.epochs > 0 && w.done == p.epochs*p.batches[n] {
		return
	}
	left := p.batches[n] - w.done%p.batches[n] // in this epoch
	w.pulled, w.group, w.at, w.computing = p.model.clone(),
		map[string]int{"BATCH": 1, "EPOCH": left, "NBATCHES": min(p.nbatches, left)}[p.freq], now, true
	for j := range w.group {
		w.at += p.takes(n, w.done+j)
	}
}

// work computes the batches of worker n, and pushes.
func (p *paramserv) work(n int) {
	w := &p.workers[n]
	local, acc := w.pulled, p.zero()
	for j := range w.group {
		g := p.upd(local.w, n, w.done+j)
		acc.add(psModel{g, make([]float64, len(g))}, 1)
		if p.modelAvg || p.freq == "NBATCHES" || j+1 < w.group {
			local = p.agg(local, g)
		}
	}
	w.done += w.group
	w.computing = false
	if p.modelAvg {
		acc = local
	}
	p.push(n, acc, w.at)
}

func (p *paramserv) push(n int, x psModel, now time.Duration) {
	need := len(p.workers)
	switch {
	case p.utype == "ASP":
		p.model = p.agg(p.model, x.w)
		p.made++
		p.used[n]++
		p.send(n, now)
		return
	case p.utype == "SBP":
		if p.straggling[n] > 0 {
			p.straggling[n]--
			p.discarded[n]++
			p.send(n, now)
			return
		}
		need -= p.backups
	}
	weight := 1.0
	if p.modelAvg {
		weight = 1 / float64(need)
	}
	p.acc.add(x, weight)
	p.finished[n] = true
	p.used[n]++
	count := 0
	for m := range p.finished {
		if p.finished[m] {
			count++
		}
	}
	if count < need {
		return
	}
	for m, done := range p.finished {
		if !done {
			p.straggling[m]++
			p.missedMost = max(p.missedMost, p.straggling[m])
		}
	}
	if p.modelAvg {
		p.model = p.acc
	} else {
		p.model = p.agg(p.model, p.acc.w)
	}
	p.acc = p.zero()
	p.made++
	for m, done := range p.finished {
		if done {
			p.finished[m] = false
			p.send(m, now)
		}
	}
}
