package runtime

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/rank/station"
	"fluentps/kernels"
)

// lender is a minimal Work: worker 1 computes the end of worker 0's batch in every iteration, at most two samples at a
// time.
type lender struct {
	me     int32
	iter   int64 // the last iteration that was started
	given  []core.Task
	helped *int
}

func (l *lender) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	switch ev.Kind {
	case core.Starting:
		l.iter = ev.Task.Iter
		if l.me == 0 {
			own := core.Task{Owner: 0, Iter: l.iter, Parts: 2, To: 5, Grain: 2}
			out = append(out, core.Order{Kind: core.Assign, Task: own},
				core.Order{Kind: core.Tell, To: 1, Msg: wire.Header{Iter: l.iter, Samples: 5}})
		}
	case core.Came:
		l.given = append(l.given, core.Task{Owner: ev.Msg.Worker, Iter: ev.Msg.Iter, Part: 1, Parts: 2, From: int32(ev.Msg.Samples), Grain: 2})
	case core.Computed:
		if ev.Task.Owner != l.me {
			*l.helped++
		}
	}
	// computed with the parameters of that iteration
	for len(l.given) > 0 && l.given[0].Iter <= l.iter && !(ev.Kind == core.Starting && l.me == l.given[0].Owner) {
		out = append(out, core.Order{Kind: core.Assign, Task: l.given[0]})
		l.given = l.given[1:]
	}
	return out
}

// withoutMemory makes ranks send messages to each other, as a work policy needs.
const withoutMemory = "cluster.shared_memory=off"

// A run in which a worker computes a part of another's batches ends with the parameters of a run in which every worker
// computes its own, except for the order in which gradients are added: the part has the same samples and the same version.
func TestWorkOfAnotherCounts(t *testing.T) {
	for _, placement := range []string{"spread", "colocate"} {
		for _, model := range []string{"softmax", "mlp, layers: [6]"} {
			t.Run(placement+" "+model, func(t *testing.T) {
				set := append([]string{"cluster={servers: 2, placement: " + placement + "}", "model={name: " + model + "}",
					"shards.slice=layer"}, withoutMemory)
				ranks := map[string]int{"spread": 6, "colocate": 4}[placement]
				plain := mustTrain(t, load(t, set...), ranks)
				helped := 0
				var mu sync.Mutex // guards the counts only: each rank has its own policy
				counts := make([]int, 4)
				res, errs := world(t, load(t, set...), ranks, func(o *Options) {
					o.axes = station.Axes{Parts: 2, Work: func(worker int) core.Work {
						mu.Lock()
						defer mu.Unlock()
						return &lender{me: int32(worker), helped: &counts[worker]}
					}}
				})
				for i, err := range errs {
					if err != nil {
						t.Fatalf("rank %d: %v", i, err)
					}
				}
				for _, n := range counts {
					helped += n
				}
				got := res[0]
				if got.Summary.Samples != plain.Summary.Samples || got.Summary.Iterations != plain.Summary.Iterations ||
					helped != 30 || counts[1] != 30 {
					t.Errorf("%d samples in %d iterations, want %d in %d; worker 1 helped %d times", got.Summary.Samples,
						got.Summary.Iterations, plain.Summary.Samples, plain.Summary.Iterations, counts[1])
				}
				if d := distance(plain.Parameters, got.Parameters); d == 0 || d > 1e-5 {
					t.Errorf("a parameter is off by %g, want a little: sums are added up in another order", d)
				}
			})
		}
	}
}

// stopper is a minimal Work: after worker 1 has computed the first iteration, worker 0 begins no more samples of its own.
type stopper struct {
	me   int32
	iter atomic.Int64
	told chan struct{} // closed after worker 0 was told
}

func (s *stopper) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	switch {
	case ev.Kind == core.Starting:
		s.iter.Store(ev.Task.Iter)
		t := ev.Task
		t.Grain = 2
		return append(out, core.Order{Kind: core.Assign, Task: t})
	case ev.Kind == core.Computed && s.me == 1 && ev.Task.Iter == 0:
		return append(out, core.Order{Kind: core.Tell, To: 0, Msg: wire.Header{}})
	case ev.Kind == core.Came:
		defer close(s.told)
		return append(out, core.Order{Kind: core.CancelWork, Task: core.Task{Parts: 1}})
	}
	return out
}

// A Cancel that arrives while the first samples are computed leaves out all others, and the push counts only the first.
func TestWorkIsCancelled(t *testing.T) {
	for _, c := range []struct {
		placement string
		ranks     int
	}{{"spread", 3}, {"colocate", 2}} {
		t.Run(c.placement, func(t *testing.T) {
			cfg := load(t, "cluster={servers: 1, placement: "+c.placement+"}", withoutMemory, "train.stop={updates: 6}", "evaluate.every_epochs=0")
			began, told := make(chan struct{}), make(chan struct{})
			res, errs := world(t, cfg, c.ranks, func(o *Options) {
				worker0 := o.Transport.Rank() == c.ranks-2
				policy := &stopper{told: told}
				policy.iter.Store(-1)
				o.axes = station.Axes{Work: func(worker int) core.Work { policy.me = int32(worker); return policy }}
				device, once := o.NewDevice, sync.Once{}
				o.NewDevice = func() (kernels.Device, error) {
					d, err := device()
					return watched{d, func(*kernels.Kernel) {
						if policy.iter.Load() != 0 {
							return
						}
						until := began // worker 1 computes after worker 0 has begun its first two samples; worker 0 continues after it was told
						if worker0 {
							once.Do(func() { close(began) })
							until = told
						}
						select {
						case <-until:
						case <-time.After(waitMax):
						}
					}}, err
				}
			})
			for i, err := range errs {
				if err != nil {
					t.Fatalf("rank %d: %v", i, err)
				}
			}
			if got := res[0].Summary.Samples; got != 6*2*8-6 {
				t.Errorf("%d samples, want all but 6 of 96", got)
			}
		})
	}
}

// A stall report says which parts of a slow worker's iteration others have computed.
func TestAStallOfMovedWorkIsExplained(t *testing.T) {
	c := load(t, "work.policy=flexrr", "faults=[{worker: 2, slow: {sleep: 30s}}]", "stall={warn: 100ms, abort: 1h}")
	mustStall(t, "aaaaaa", c,
		`waits for worker 2 .*; of worker 2 parts \[1.*\] of an unknown number, which its own part tells of its iteration 0 have landed`)
}

// Under FlexRR a slow worker's helpers compute samples of its batch, and a run ends with the parameters of a run without it, except for the
// order in which gradients are added.
func TestFlexRRMovesWork(t *testing.T) {
	for _, placement := range []string{"spread", "colocate"} {
		t.Run(placement, func(t *testing.T) {
			set := []string{"cluster={servers: 2, placement: " + placement + "}", withoutMemory,
				"faults=[{worker: 1, slow: {sleep: 40ms}}]", "train.stop={updates: 6}"}
			ranks := map[string]int{"spread": 6, "colocate": 4}[placement]
			plain := mustTrain(t, load(t, set...), ranks)
			moved := mustTrain(t, load(t, append(set, "work={policy: flexrr, micro: 1}")...), ranks)
			if moved.Summary.Samples != plain.Summary.Samples || moved.Summary.Iterations != plain.Summary.Iterations {
				t.Errorf("%d samples in %d iterations, want %d in %d", moved.Summary.Samples, moved.Summary.Iterations,
					plain.Summary.Samples, plain.Summary.Iterations)
			}
			if d := distance(plain.Parameters, moved.Parameters); d == 0 || d > 1e-5 {
				t.Errorf("a parameter is off by %g, want a little: sums are added up in another order", d)
			}
		})
	}
}

// threaded notes how many threads a device is told to use.
type threaded struct {
	kernels.Device
	told func(n int)
}

func (d threaded) SetThreads(n int) {
	d.told(n)
	d.Device.(kernels.Threaded).SetThreads(n)
}

// Under EPSP a slow worker gets threads of others on its host, its kernels use them, and the run ends with the
// parameters of a run without it, except for the order in which gradients are added. On another host no thread moves.
func TestThreadsMoveToAStraggler(t *testing.T) {
	const base, most = 4, 6
	set := []string{"cluster={servers: 1}", withoutMemory, "device={kind: cpu, threads: 4}",
		"faults=[{worker: 1, slow: {sleep: 40ms}}]", "train.stop={updates: 8}"}
	plain := mustTrain(t, load(t, set...), 5)
	for hosts, moves := range map[string]bool{"aaaaa": true, "aabcd": false} {
		var mu sync.Mutex
		told := map[int][]int{} // by rank
		res, errs := runOver(t, hosted(hosts), load(t, append(set, "work={policy: epsp, micro: 1, threads_max: 6}")...), func(o *Options) {
			rank, device := o.Transport.Rank(), o.NewDevice
			o.Host = hosts[rank:][:1]
			o.NewDevice = func() (kernels.Device, error) {
				d, err := device()
				return threaded{d, func(n int) {
					mu.Lock()
					defer mu.Unlock()
					told[rank] = append(told[rank], n)
				}}, err
			}
		})
		for i, err := range errs {
			if err != nil {
				t.Fatalf("%s: rank %d: %v", hosts, i, err)
			}
		}
		if d := distance(plain.Parameters, res[0].Parameters); d == 0 || d > 1e-5 {
			t.Errorf("%s: a parameter is off by %g, want a little: sums are added up in another order", hosts, d)
		}
		for w, s := range res[0].Summary.PerWorker {
			ns, sum := told[w+1], 0
			for _, n := range ns {
				sum += n
			}
			if len(ns) != int(s.Iterations) || ns[0] != base || slices.Min(ns) < 1 || slices.Max(ns) > most || !moves &&
				sum != base*len(ns) || moves && w == 1 && slices.Max(ns) == base {
				t.Errorf("%s: worker %d computes %d iterations with %v threads", hosts, w, s.Iterations, ns)
			}
			if got := float64(s.Threads) * float64(len(ns)); math.Abs(got-float64(sum)) > 1e-6 {
				t.Errorf("%s: worker %d is said to have had %v threads, of %v", hosts, w, got, ns)
			}
		}
	}
}

// Model synthetic writes its gradients only where they are not as it left them. Ways that sum in place change them: parts of a batch, an
// all-reduce, deltas. With them all, the sums are exact, and the parameters those of bsp.
func TestSyntheticHasTheSameParametersWhereSumsAreInPlace(t *testing.T) {
	common := []string{"model={name: synthetic, layers: [90, 40]}", "train.optimizer={name: sgd, lr: 0.125}"}
	want := mustTrain(t, load(t, common...), 6).Summary.ParametersSHA256
	for _, k := range []struct {
		ranks int
		set   []string
	}{
		{6, []string{"work={policy: flexrr, micro: 2}", "faults=[{worker: 1, slow: {sleep: 4ms}}]"}},
		{6, []string{"work={policy: epsp, micro: 2}"}},
		{4, []string{"baseline=allreduce", "baseline.algorithm=ring"}},
		{4, []string{"baseline=allreduce", "baseline.algorithm=halving"}},
		{6, []string{"sync[0].push=delta"}},
	} {
		if got := mustTrain(t, load(t, append(k.set, common...)...), k.ranks).Summary.ParametersSHA256; got != want {
			t.Errorf("%q: parameters %s, want %s", k.set, got, want)
		}
	}
}
