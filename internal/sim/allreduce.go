package sim

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/core/shard"
	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

// Baseline allreduce in virtual time. There are no nodes. In each iteration every worker computes, and a ring of all ranks sums
// the gradients bucket by bucket while backward runs, the last layers first. Then each worker takes the same step.
//
// A ring of N ranks sums b bytes in 2 (N-1) steps. In each step every rank sends 1/N of the bytes to the next rank: in the first
// N-1 steps the parts are added up on their way, in the last N-1 steps the sums go round. The part that begins at the rank that
// starts last has all of these steps before it, and no other part is later. So the sum ends at
//
//	end = start of the last rank + 2 (N-1) (latency + b / N / bandwidth)
//
// whenever the other ranks start. One bucket is summed at a time, in the same order on all ranks.

// allReduce is the state of a run of baseline allreduce.
type allReduce struct {
	o       Options
	workers []worker
	stages  stages
	buckets []shard.Bucket
	layer   []int             // per bucket: the layer whose gradients complete it
	cost    []int64           // per bucket: nanoseconds to sum it
	moves   int64             // bytes that one iteration moves over all links
	commit  int64             // nanoseconds of a step of the optimizer
	pauses  [][]Pause         // per worker, in order of their times
	paused  int               // number of pauses
	dealer  *work.Coordinator // nil: batches never change
	tallies []work.Tally      // by worker
	now     int64
	iter    int64
	samples int64
	trace   uint64
}

func runAllReduce(o Options) (*Result, error) {
	if err := refuse(&o); err != nil {
		return nil, err
	}
	r, err := newAllReduce(o)
	if err != nil {
		return nil, err
	}
	for over := false; !over; {
		over = r.iterate()
	}
	return r.result(), nil
}

func newAllReduce(o Options) (*allReduce, error) {
	c, p := o.Config, o.Plan
	n := c.Simulate.Workers
	r := &allReduce{o: o, workers: make([]worker, n), stages: newStages(c, p, true), buckets: p.Buckets(),
		pauses: make([][]Pause, n), trace: traceStart,
		commit: nanoseconds(int64(p.Arena)*shard.ElemBytes, c.Simulate.CommitRate)}
	paused, err := modelWorkers(&r.o, r.workers)
	if err != nil {
		return nil, err
	}
	for i := range r.workers {
		r.workers[i].rank, r.workers[i].host = i, i/c.Simulate.RanksPerHost
	}
	for _, q := range append(slices.Clip(o.Pauses), paused...) {
		r.paused++
		r.pauses[q.Worker] = append(r.pauses[q.Worker], q)
	}
	if r.dealer, err = c.NewDealer(n, o.Rows, nil, 0); err != nil {
		return nil, err
	}
	if r.dealer != nil {
		r.dealer.Replay = o.Record
		r.tallies = make([]work.Tally, n)
		r.begin()
	}
	for w := range r.pauses {
		slices.SortStableFunc(r.pauses[w], func(a, b Pause) int { return int(a.At - b.At) })
	}
	r.layer, r.cost = make([]int, len(r.buckets)), make([]int64, len(r.buckets))
	for i := range r.layer {
		r.layer[i] = len(r.stages.pieces)
	}
	for id, k := range p.BucketOf(r.buckets) {
		r.layer[k] = min(r.layer[k], int(p.Pieces[id].Layer)) // backward reaches the first layer last
	}
	for k, b := range r.buckets {
		elements := b.Hi - b.Lo
		if k == 0 {
			elements += shard.BucketTail
		}
		bytes := int64(elements) * shard.ElemBytes
		r.cost[k] = r.ringTime(bytes)
		r.moves += 2 * int64(n-1) * bytes
	}
	return r, nil
}

// begin begins the present plan of batches.
func (r *allReduce) begin() {
	for i := range r.tallies {
		r.tallies[i].Begin(r.dealer.Current().Until)
	}
}

// deal deals the next batches when the plan has ended. That costs a message to the first rank and one back.
func (r *allReduce) deal() {
	if r.dealer == nil || r.iter < r.dealer.Current().Until {
		return
	}
	answer := work.Nothing
	for i := range r.tallies {
		answer = r.dealer.Step(work.Event{Worker: i, Until: r.iter, Measured: r.tallies[i].Measured()})
	}
	if answer == work.Dealt {
		if r.o.Dealt != nil {
			r.o.Dealt(*r.dealer.Current())
		}
		r.begin()
	}
	if len(r.workers) > r.o.Config.Simulate.RanksPerHost {
		r.now += 2 * int64(r.o.Config.Simulate.Network.Latency)
	}
}

// ringTime is how long the sum of so many bytes takes after the last rank has started, in nanoseconds. All hops of a step are
// simultaneous, so the slowest hop sets the pace.
func (r *allReduce) ringTime(bytes int64) int64 {
	m, n := &r.o.Config.Simulate, len(r.workers)
	part := func(rate int64) float64 {
		if rate == 0 {
			return 0
		}
		return float64(bytes) / float64(n) / float64(rate) * 1e9
	}
	var hop float64
	if n > m.RanksPerHost {
		hop = float64(m.Network.Latency) + part(m.Network.Bandwidth)
	}
	if m.RanksPerHost > 1 {
		hop = max(hop, part(m.Network.Memory))
	}
	return int64(float64(2*(n-1)) * hop)
}

// iterate simulates one iteration of all workers, and says whether it was the last one.
func (r *allReduce) iterate() (over bool) {
	stop := r.o.Config.Train.Stop
	layers := len(r.stages.pieces)
	start := r.now
	ready := make([]int64, len(r.buckets))
	ends := make([]int64, len(r.workers))
	for i := range r.workers {
		w := &r.workers[i]
		if r.dealer != nil {
			w.batch = int64(r.dealer.Current().Samples(i, r.iter, r.o.Rows))
		}
		w.pass.own, w.pass.injected, w.pass.late = w.takes(r.iter)
		at := func(stage int) int64 { return r.computed(i, start, w.before(&r.stages, stage)) }
		if i == 0 { // worker 0 checks the budget of time for all, at the end of forward
			over = stop.Time > 0 && r.computed(i, start, w.before(&r.stages, layers)+w.pass.injected) >= int64(stop.Time)
		}
		for k, layer := range r.layer {
			ready[k] = max(ready[k], at(2*layers-layer))
		}
		ends[i] = at(2 * layers)
		w.spans.Add(metrics.Compute, time.Duration(ends[i]-start))
		w.samples += w.batch
		r.samples += w.batch
		if r.dealer != nil {
			took := time.Duration(at(2*layers) - start)
			r.tallies[i].Add(w.batch, took, int(w.batch) == r.dealer.Current().Batches[i])
		}
		if r.o.Computed != nil {
			r.o.Computed(i, r.iter, time.Duration(start), time.Duration(ends[i]))
		}
		if r.o.Iterations != nil {
			took := time.Duration(ends[i] - start)
			r.o.Iterations[i].Add(timings.Iteration{Iter: r.iter, Start: time.Duration(start), Compute: took,
				Injected: took - time.Duration(w.pass.own), Samples: int(w.batch)})
		}
	}
	r.now = start
	for k, cost := range r.cost {
		r.now = max(r.now, ready[k]) + cost
		r.trace = mix(mix(r.trace, uint64(k)), uint64(r.now))
	}
	for i := range r.workers {
		w := &r.workers[i]
		w.spans.Add(metrics.Blocked, time.Duration(r.now-ends[i]))
		if r.o.Iterations != nil {
			r.o.Iterations[i].Waited(time.Duration(r.now-ends[i]), 0)
		}
		w.spans.Add(metrics.Fold, time.Duration(r.commit))
	}
	r.now += r.commit
	r.iter++
	r.deal()
	budget := stop.SampleBudget(r.o.Rows)
	return over || budget > 0 && r.samples >= budget || stop.Updates > 0 && r.iter >= stop.Updates
}

// computed is the time at which a worker that starts at from has computed for takes nanoseconds. Its pauses delay it.
func (r *allReduce) computed(me int, from, takes int64) int64 {
	at := from + takes
	for _, p := range r.pauses[me] {
		switch lo, hi := int64(p.At), int64(p.At+p.For); {
		case hi <= from || lo >= at:
		case lo < from:
			at += hi - from
		default:
			at += hi - lo
		}
	}
	return at
}

func (r *allReduce) result() *Result {
	c, wall := r.o.Config, time.Duration(r.now)
	moved := r.moves * r.iter
	sum := &metrics.Summary{
		Job: metrics.Job{
			Name: c.Name, Finished: metrics.FinishedOK, Mode: "simulated", Baseline: c.Baseline,
			Workers: len(r.workers),
		},
		CostModel: r.model(),
		Extent:    metrics.Extent{Iterations: r.iter, Updates: r.iter, Samples: r.samples},
		Seed:      c.Seed,
		Costs: metrics.Costs{
			WallS: metrics.Float(wall.Seconds()), TrainS: metrics.Float(wall.Seconds()),
			SamplesPerS: metrics.Float(float64(r.samples) / wall.Seconds()),
		},
		Work:    c.WorkText(),
		Payload: c.Payload.Summary(),
		Traffic: metrics.Traffic{BytesSent: moved, BytesReceived: moved},
	}
	var spans []metrics.Spans
	for i := range r.workers {
		w := &r.workers[i]
		w.spans.Wall = wall
		spans = append(spans, w.spans)
		sum.PerWorker = append(sum.PerWorker,
			metrics.WorkerSummary{Worker: i, Rank: w.rank, Host: fmt.Sprintf("host%d", w.host), Iterations: r.iter, Samples: w.samples,
				ComputeS: metrics.Float(w.spans.Times[metrics.Compute].Seconds()), BlockedS: metrics.Float(w.spans.Times[metrics.Blocked].Seconds())})
	}
	sum.PerRole = map[string]metrics.RoleTimes{metrics.RoleServer: metrics.OverRanks(nil), metrics.RoleWorker: metrics.OverRanks(spans)}
	return &Result{Summary: sum, Steps: r.iter * int64(len(r.workers)*len(r.buckets)), Trace: r.trace, Duration: wall}
}

// model describes the models, one line each.
func (r *allReduce) model() []string {
	m := &r.o.Config.Simulate
	return append([]string{
		computeText(&r.o, &r.stages),
		networkText(m),
		fmt.Sprintf("ring     baseline allreduce: %d buckets of at least %s (but the last), one at a time; each in %d "+
			"steps of 1/%d of its bytes and a latency; bytes are those that the ring moves",
			len(r.buckets), metrics.Size(shard.BucketBytes), 2*(len(r.workers)-1), len(r.workers)),
		fmt.Sprintf("workers  take the same step each, %s", rate(m.CommitRate)),
		faultsText(&r.o, r.paused),
	}, slowLines(r.o.Config)...)
}
