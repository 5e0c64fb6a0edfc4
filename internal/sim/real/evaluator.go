package real

import (
	"math"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/plan/layout"
	"fluentps/internal/plan/origin"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/records"
	"fluentps/ps/workload"
)

// snapshotsMax bounds the snapshots that are kept at once, however much memory there is.
const snapshotsMax = 1000

// evaluator evaluates snapshots on the test set during a run with real gradients. That takes no virtual time.
type evaluator struct {
	f     *floats
	model workload.Model
	batch workload.Batch
	judge metrics.Judge
	rows  []int32 // scratch; its capacity is the largest batch

	room    int64 // the most snapshots kept at once
	kept    map[int64]*snapshot
	free    [][]float32 // unused arenas
	leftOut int         // snapshots of a shard that there was no memory for

	loss     metrics.EpochLoss
	window   window // since the last record
	accepted int64  // pushes folded by the lead shard
	leadMax  int64
	rate     float64 // learning rate of the lead shard's last commit
	evals    []metrics.Evaluation
	records  []records.Record
	target   *metrics.Float // virtual seconds when the target was reached
	reason   string         // why the run ended early; "": it did not
}

// window sums over the pushes that the lead shard folded.
type window struct {
	loss             float64
	correct, samples int64
}

// snapshot is the model when a number of samples had been committed. Each shard counts its own samples.
type snapshot struct {
	arena   []float32
	missing int // shards that have not reached it
	mark    mark
}

// mark is when the lead shard reached a snapshot.
type mark struct {
	at                 time.Duration
	samples, iteration int64
}

func newEvaluator(f *floats, spec workload.ModelSpec, room int64) (*evaluator, error) {
	most := f.architecture.EvalRows()
	v := &evaluator{f: f, room: room, judge: layout.Judge(f.s.Config(), f.set),
		kept: map[int64]*snapshot{}, loss: metrics.EpochLoss{Rows: int64(f.set.Train.Rows())},
		batch: workload.NewBatch(spec.Name, f.set.Samples(), most), rows: make([]int32, 0, most)}
	var err error
	v.model, err = workload.NewModel(spec, f.set.Samples(), f.g.Device, most)
	return v, err
}

// folded counts a push that the lead shard folded.
func (v *evaluator) folded(m wire.Header) {
	v.accepted++
	v.leadMax = max(v.leadMax, m.Iter-m.Clock)
	v.loss.Add(m.Loss, m.Samples)
	w := &v.window
	w.loss, w.correct, w.samples = w.loss+m.Loss, w.correct+m.Correct, w.samples+m.Samples
	if (math.IsNaN(m.Loss) || math.IsInf(m.Loss, 0)) && v.reason == "" {
		v.reason = v.origin(&m)
		v.stop()
	}
}

// origin says where the first value that is not finite arose: in the store that has found one first, or in the loss itself.
func (v *evaluator) origin(m *wire.Header) string {
	s := v.f.s
	data := v.f.set.Largest()
	f := origin.Finding{Place: origin.Loss, Worker: m.Worker, Server: origin.Nobody, Iter: m.Iter, Value: origin.Text(m.Loss), Batch: data}
	if origin.Huge(data, 0) {
		f.Place = origin.Data
	}
	var found []origin.Finding
	for id := range v.f.stores {
		if of := v.f.stores[id].found; of != nil {
			found = append(found, *of)
		}
	}
	if of := v.f.coded.found; of != nil {
		found = append(found, *of)
	}
	if first, any := origin.First(found); any {
		f = first
	}
	return origin.Explain(&f, s.Config(), data)
}

// lookAtFault keeps the first value of a shard that was not finite. version is the one that the shard has made.
func (f *floats) lookAtFault(st *store, version int64) {
	if fault := st.math.Fault(); fault != nil && st.found == nil {
		of := origin.OfCommit(fault, st.pushers, st.sh.Server, version)
		of.Param, of.Elem, of.Layer = f.s.Plan().ElementAt(st.sh.Lo + fault.At)
		of.At = f.s.Now()
		st.found = &of
	}
	st.pushers = st.pushers[:0]
}

// stop ends the run for a reason that the nodes cannot see.
func (v *evaluator) stop() { v.f.s.Stop() }

// arena returns memory for a model.
func (v *evaluator) arena() []float32 {
	if n := len(v.free); n > 0 {
		a := v.free[n-1]
		v.free = v.free[:n-1]
		return a
	}
	return make([]float32, v.f.s.Plan().Arena)
}

// snapshot keeps a version of a shard. With the version of the last shard it evaluates the model. Without memory for another
// snapshot the evaluation is left out.
func (v *evaluator) snapshot(e *core.Effect, version []float32) {
	s := v.kept[e.Iter]
	if s == nil {
		if int64(len(v.kept)) >= v.room {
			v.leftOut++
			return
		}
		s = &snapshot{arena: v.arena(), missing: len(v.f.stores)}
		v.kept[e.Iter] = s
	}
	copy(s.arena[v.f.stores[e.Shard].sh.Lo:], version)
	if e.Shard == 0 {
		s.mark = mark{at: v.f.s.Now(), samples: e.Samples, iteration: v.iteration()}
	}
	if s.missing--; s.missing > 0 {
		return
	}
	if v.reason == "" {
		v.evaluate(s.arena, s.mark)
	}
	for k, old := range v.kept { // shards take snapshots in order, so an older one will never be complete
		if k <= e.Iter {
			v.free = append(v.free, old.arena)
			delete(v.kept, k)
		}
	}
}

// iteration is the iteration of the run: accepted pushes of the lead shard / workers.
func (v *evaluator) iteration() int64 {
	if v.f.s.Code() != nil {
		return v.f.s.Iterations()
	}
	return v.accepted / int64(len(v.f.replicas))
}

// evaluate evaluates a model on the whole test set.
func (v *evaluator) evaluate(arena []float32, m mark) {
	t := v.f.set.Test
	if t.Rows() == 0 {
		return
	}
	v.model.Bind(v.f.s.Plan().Views(arena), nil)
	var sums metrics.Sums
	for lo, most := 0, cap(v.rows); lo < t.Rows(); lo += most {
		n := min(most, t.Rows()-lo)
		v.rows = v.rows[:0]
		for i := range n {
			v.rows = append(v.rows, int32(lo+i))
		}
		var l float64
		var c int
		err := v.batch.Take(t, v.rows)
		if err == nil {
			l, c, err = v.model.Eval(v.batch)
		}
		if err != nil {
			v.f.s.Fail("evaluation at %d samples: %v", m.samples, err)
			return
		}
		of := workload.ErrorsOf(v.model)
		sums.Loss, sums.Correct = sums.Loss+l, sums.Correct+int64(c)
		sums.Absolute, sums.Squared = sums.Absolute+of.Absolute, sums.Squared+of.Squared
	}
	v.evaluated(m, sums)
}

func (v *evaluator) evaluated(m mark, sums metrics.Sums) {
	at := m.at
	epoch := float64(m.samples) / float64(v.f.set.Train.Rows())
	e := metrics.Evaluation{Samples: m.samples, Epoch: metrics.Float(epoch), AtS: metrics.Float(at.Seconds())}
	e.Judge(v.judge, sums)
	v.evals = append(v.evals, e)
	rec := records.Record{At: at, Iteration: m.iteration, Epoch: epoch, Samples: m.samples}
	if w := v.window; w.samples > 0 {
		rec.Set(records.TrainLoss, w.loss/float64(w.samples))
		if v.judge.Measure == metrics.Hits {
			rec.Set(records.TrainAccuracy, float64(w.correct)/float64(w.samples))
		}
	}
	v.window = window{}
	rec.Set(records.TrainLR, v.rate)
	rec.Set(records.LeadMax, float64(v.leadMax))
	e.Record(&rec)
	v.records = append(v.records, rec)
	if goal := v.f.s.Config().Train.Stop.Target; goal > 0 && e.Score() >= goal && v.target == nil {
		v.target = metrics.Some(at.Seconds())
		v.stop()
	}
}

// finish evaluates the final model and writes the results to the summary. It returns the parameters in model order.
func (v *evaluator) finish(sum *metrics.Summary) (parameters []float32) {
	s, c := v.f.s, v.f.s.Config()
	arena := v.arena()
	for i := range v.f.stores {
		sh := v.f.stores[i].sh
		cur := s.Shard(sh.ID).Cur
		copy(arena[sh.Lo:sh.Hi], v.f.stores[i].bufs[cur])
	}
	for _, p := range s.Plan().Views(arena) {
		parameters = append(parameters, p...)
	}
	sum.ParametersSHA256 = workload.HashOf(parameters)
	sum.Unjudged(v.judge.Measure)
	if c.Train.Optimizer.L1 > 0 {
		sum.Sparsity = metrics.SparsityOf(parameters)
	}
	sum.TrainLoss = v.loss.Value()
	if v.reason == "" {
		if n := len(v.evals); n > 0 && v.evals[n-1].Samples == sum.Samples {
			// Each shard takes its own snapshot, so this one may lack a few pushes of the final version.
			v.evals = v.evals[:n-1]
		}
		v.evaluate(arena, mark{at: s.Ended(), samples: sum.Samples, iteration: v.iteration()})
	} else {
		sum.Finished = v.reason
	}
	if sum.Evaluations = v.evals; len(v.evals) > 0 && v.reason == "" {
		sum.Conclude()
	}
	if goal := c.Train.Stop.Target; goal > 0 {
		sum.Target, sum.TargetReachedS = metrics.Some(goal), v.target
	}
	return parameters
}
