package train_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

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
				got := sidestest.Train(t, load(t, set...), ranks, sidestest.Options{Axes: func(int) station.Axes {
					return station.Axes{Parts: 2, Work: func(worker int) core.Work {
						mu.Lock()
						defer mu.Unlock()
						return &sidestest.Lender{Me: int32(worker), Helped: &counts[worker]}
					}}
				}})
				for _, n := range counts {
					helped += n
				}
				if got.Committed() != plain.Committed() || got.Pushes() != plain.Pushes() || helped != 30 || counts[1] != 30 {
					t.Errorf("%d samples in %d iterations, want %d in %d; worker 1 helped %d times", got.Committed(), got.Pushes(),
						plain.Committed(), plain.Pushes(), counts[1])
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
			policies := make([]*stopper, c.ranks)
			for rank := range policies {
				policies[rank] = &stopper{told: told}
				policies[rank].iter.Store(-1)
			}
			var once sync.Once
			got := sidestest.Train(t, cfg, c.ranks, sidestest.Options{
				Axes: func(rank int) station.Axes {
					return station.Axes{Work: func(worker int) core.Work { policies[rank].me = int32(worker); return policies[rank] }}
				},
				Device: func(rank int) kernels.Device {
					worker0, policy := rank == c.ranks-2, policies[rank]
					return watched{cpu.New(1), func(*kernels.Kernel) {
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
					}}
				}})
			if got := got.Committed(); got != 6*2*8-6 {
				t.Errorf("%d samples, want all but 6 of 96", got)
			}
		})
	}
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
			if moved.Committed() != plain.Committed() || moved.Pushes() != plain.Pushes() {
				t.Errorf("%d samples in %d iterations, want %d in %d", moved.Committed(), moved.Pushes(), plain.Committed(), plain.Pushes())
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
		got := sidestest.Train(t, load(t, append(set, "work={policy: epsp, micro: 1, threads_max: 6}")...), 5, sidestest.Options{Hosts: hosts,
			Device: func(rank int) kernels.Device {
				return threaded{cpu.New(4), func(n int) {
					mu.Lock()
					defer mu.Unlock()
					told[rank] = append(told[rank], n)
				}}
			}})
		if d := distance(plain.Parameters, got.Parameters); d == 0 || d > 1e-5 {
			t.Errorf("%s: a parameter is off by %g, want a little: sums are added up in another order", hosts, d)
		}
		for w, s := range got.Workers {
			ns, sum := told[w+1], 0
			for _, n := range ns {
				sum += n
			}
			if len(ns) != int(s.Iterations) || ns[0] != base || slices.Min(ns) < 1 || slices.Max(ns) > most || !moves &&
				sum != base*len(ns) || moves && w == 1 && slices.Max(ns) == base {
				t.Errorf("%s: worker %d computes %d iterations with %v threads", hosts, w, s.Iterations, ns)
			}
			if s.Threads != int64(sum) {
				t.Errorf("%s: worker %d reports %d threads over all iterations, of %v", hosts, w, s.Threads, ns)
			}
		}
	}
}

// Model synthetic writes its gradients only where they are not as it left them. Ways that sum in place change them: parts of a
// batch, deltas. With them all, the sums are exact, and the parameters those of bsp.
func TestSyntheticHasTheSameParametersWhereSumsAreInPlace(t *testing.T) {
	common := []string{"model={name: synthetic, layers: [90, 40]}", "train.optimizer={name: sgd, lr: 0.125}"}
	want := mustTrain(t, load(t, common...), 6).SHA256()
	for _, k := range []struct {
		ranks int
		set   []string
	}{
		{6, []string{"work={policy: flexrr, micro: 2}", "faults=[{worker: 1, slow: {sleep: 4ms}}]"}},
		{6, []string{"work={policy: epsp, micro: 2}"}},
		{6, []string{"sync[0].push=delta"}},
	} {
		if got := mustTrain(t, load(t, append(k.set, common...)...), k.ranks).SHA256(); got != want {
			t.Errorf("%q: parameters %s, want %s", k.set, got, want)
		}
	}
}
