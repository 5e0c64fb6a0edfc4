package allreduce

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/rank/sidestest"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/internal/rank/train"
	"fluentps/kernels/cpu"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ended is how a rank has ended.
type ended struct {
	algorithm        string
	hash             string
	params           []float32
	samples, version int64
	iterations       []Iteration // rank 0 only
	snapshots        []int64     // rank 0 only: the samples of each
}

// observer is rank 0's, of a test.
type observer struct {
	*ended
	a       *AllReduce
	reduced func(*AllReduce, Iteration) // may be nil
}

func (o *observer) Reduced(i Iteration) {
	if o.iterations = append(o.iterations, i); o.reduced != nil {
		o.reduced(o.a, i)
	}
}

func (o *observer) Snapshotted(_, samples, _ int64) { o.snapshots = append(o.snapshots, samples) }

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return configstest.Load(t, append([]string{"baseline=allreduce"}, set...)...)
}

// reduce has the ranks of these hosts train, without a run around them. reduced hears of each iteration on rank 0, and may stop them.
func reduce(t testing.TB, c *configs.Config, hosts string, reduced func(*AllReduce, Iteration)) []ended {
	t.Helper()
	return reduceOn(t, c, hosts, func() train.Options { return train.Options{Device: cpu.New(1)} }, reduced)
}

// reduceOn is reduce with other devices.
func reduceOn(t testing.TB, c *configs.Config, hosts string, of func() train.Options, reduced func(*AllReduce, Iteration)) []ended {
	t.Helper()
	all := make([]ended, len(hosts))
	stationtest.World{Config: c, Hosts: hosts}.Must(t, func(st *station.Station) error { return trainOn(st, &all[st.Me], of(), reduced) })
	for rank := range all {
		a := &all[rank]
		if a.hash != all[0].hash || a.version != all[0].version || a.samples != all[0].samples || a.algorithm != all[0].algorithm {
			t.Errorf("rank %d ends with %.12s after %d versions and %d samples by %s, rank 0 with %.12s, %d, %d and %s", rank, a.hash, a.version,
				a.samples, a.algorithm, all[0].hash, all[0].version, all[0].samples, all[0].algorithm)
		}
	}
	return all
}

// trainOn trains on one rank.
func trainOn(st *station.Station, into *ended, o train.Options, reduced func(*AllReduce, Iteration)) error {
	w, err := train.New(st, o)
	if err != nil {
		return errors.Join(err, o.Device.Close())
	}
	defer w.Close()
	var hears Observer
	own := &observer{ended: into, reduced: reduced}
	if st.Me == 0 {
		hears = own
	}
	a, err := New(st, w, hears, nil)
	if err != nil {
		return err
	}
	own.a = a
	defer a.Close()
	defer a.Forget(math.MaxInt64)
	if err := errors.Join(a.Choose(), st.Transport.Barrier()); err != nil {
		return err
	}
	st.Mu.Lock()
	err = a.Train()
	close(st.Ended)
	st.Mu.Unlock()
	into.algorithm, into.hash, into.params = a.Algorithm, a.Hash(), slices.Clone(a.params.F32()[:st.Plan.Arena])
	into.samples, into.version = a.samples, a.version
	return err
}

// distance is the largest difference of two results, relative to the size of the second.
func distance(a, b []float32) (most float64) {
	for i := range b {
		most = max(most, math.Abs(float64(a[i]-b[i]))/(1+math.Abs(float64(b[i]))))
	}
	return most
}

// All ranks end with the same bits by every algorithm, and by all with the same result within float tolerance. Over several
// hosts auto tries them and takes one for all ranks; on one host it takes the sums of the transport.
func TestAlgorithmsOfAllreduceTrainAlike(t *testing.T) {
	for _, set := range [][]string{
		{"train.optimizer={name: momentum, lr: 0.05}"},
		{"train.optimizer={name: lars, lr: 2, trust: 0.02}", "shards.slice=layer", "model={name: mlp, layers: [12, 6]}"},
		{"train.optimizer={name: muon, lr: 0.002}", "model={name: mlp, layers: [12, 6]}"},
	} {
		want := reduce(t, load(t, set...), "aaaa", nil)[0]
		if want.algorithm != "mpi" || want.version != 30 || want.samples != 30*32 {
			t.Errorf("one host: by %s, %d versions of %d samples", want.algorithm, want.version, want.samples)
		}
		for _, algorithm := range []string{"ring", "halving"} {
			got := reduce(t, load(t, append(set, "baseline={name: allreduce, algorithm: "+algorithm+"}")...), "aaaa", nil)[0]
			if d := distance(got.params, want.params); got.algorithm != algorithm || !(d < 1e-4) {
				t.Errorf("%s: by %s, a difference of %g", algorithm, got.algorithm, d)
			}
		}
		got := reduce(t, load(t, set...), "aabb", nil)[0]
		if d := distance(got.params, want.params); !slices.Contains([]string{"mpi", "ring", "halving"}, got.algorithm) || !(d < 1e-4) {
			t.Errorf("auto over two hosts: by %q, a difference of %g", got.algorithm, d)
		}
	}
}

// Sums are in the memory of hosts: where devices have memory of their own, each rank copies all parameters and all gradients once in an
// iteration, also where the network reaches that memory, and ends with the bits that it has on the host.
func TestAnAllreduceSumsInTheMemoryOfHosts(t *testing.T) {
	const iterations, ranks, arena = 30, 6, 20*24 + 24 + 24*16 + 16 + 16*4 + 4
	c := load(t, "baseline={name: allreduce, algorithm: mpi}", "model={name: mlp, layers: [24, 16]}")
	want := reduce(t, c, "abcdef", nil)[0].hash
	for _, reached := range []bool{false, true} {
		count := &sidestest.Copies{}
		got := reduceOn(t, c, "abcdef", func() train.Options {
			d := sidestest.NewDistant(cpu.New(1), count)
			if !reached {
				return train.Options{Device: d}
			}
			return train.Options{Device: d, Placer: d}
		}, nil)
		if got[0].hash != want || count.Placed != 0 || count.In != iterations*ranks*arena || count.Out != iterations*ranks*arena {
			t.Errorf("reached %v: parameters %.12s, on the host %.12s; placed %d arenas, copied %d elements in and %d out, want %d", reached,
				got[0].hash, want, count.Placed, count.In, count.Out, iterations*ranks*arena)
		}
	}
}

// Model synthetic writes its gradients only where they are not as it left them, and an all-reduce sums in their place. The sums are
// exact, and so the parameters are those of bsp.
func TestAnAllreduceOfSyntheticHasTheParametersOfBSP(t *testing.T) {
	common := []string{"model={name: synthetic, layers: [90, 40]}", "train.optimizer={name: sgd, lr: 0.125}"}
	want := sidestest.Train(t, configstest.Load(t, append(common, "evaluate.every_epochs=0")...), 6, sidestest.Options{}).SHA256()
	for _, algorithm := range []string{"ring", "halving"} {
		if got := reduce(t, load(t, append(common, "baseline.algorithm="+algorithm)...), "aaaa", nil)[0].hash; got != want {
			t.Errorf("%s: parameters %s, want %s", algorithm, got, want)
		}
	}
}

// Each rank clips its own gradient before it is summed, as a worker does before it pushes.
func TestAnAllreduceClipsWhatEachRankAdds(t *testing.T) {
	common := []string{"model={name: mlp, layers: [12, 6]}", "train.clip.norm=1"}
	want := sidestest.Train(t, configstest.Load(t, append(common, "evaluate.every_epochs=0", "cluster.servers=1")...), 5, sidestest.Options{})
	for _, algorithm := range []string{"mpi", "ring", "halving"} {
		got := reduce(t, load(t, append(common, "baseline={name: allreduce, algorithm: "+algorithm+"}")...), "aaaa", nil)
		if d := distance(got[0].params, want.Parameters); !(d < 1e-4) {
			t.Errorf("%s: a difference of %g", algorithm, d)
		}
	}
	for _, w := range want.Workers {
		if w.Clipped == 0 || w.Clipped == w.Gradients {
			t.Errorf("worker %d clips %d of %d gradients: the norm is badly chosen", w.Worker, w.Clipped, w.Gradients)
		}
	}
}

// All ranks have the whole mean, and clip it alike: as the servers of a rule that agree on its norm do.
func TestAnAllreduceClipsTheMean(t *testing.T) {
	common := []string{"model={name: mlp, layers: [12, 6]}", "train.clip={norm: 1, of: mean}"}
	want := sidestest.Train(t, configstest.Load(t, append(common, "evaluate.every_epochs=0", "cluster.servers=2",
		`sync=[{match: "*", scheme: drop, contributors: step}]`)...), 6, sidestest.Options{})
	if k := want.Servers[0].Clipped; k.Of != 30 || k.Clipped == 0 || k.Clipped == k.Of {
		t.Errorf("%+v: the norm is badly chosen", k)
	}
	for _, algorithm := range []string{"mpi", "ring", "halving"} {
		got := reduce(t, load(t, append(common, "baseline={name: allreduce, algorithm: "+algorithm+"}")...), "aaaa", nil)
		if d := distance(got[0].params, want.Parameters); !(d < 1e-4) {
			t.Errorf("%s: a difference of %g", algorithm, d)
		}
	}
}

// The number of ranks among which an iteration's samples are dealt changes the sum by rounding alone: four ranks with 8 samples
// each take the steps of their number times the loss that rank 0 hears of.
func TestRankZeroHearsOfAllRanks(t *testing.T) {
	all := reduce(t, load(t, "train.stop={updates: 6}"), "aaaa", nil)
	if n := len(all[0].iterations); n != 6 || len(all[1].iterations) != 0 {
		t.Fatalf("rank 0 heard of %d iterations, rank 1 of %d", n, len(all[1].iterations))
	}
	for i, it := range all[0].iterations {
		mean := it.Loss / float64(it.Samples)
		if it.Version != int64(i+1) || it.Samples != 32 || it.Correct < 0 || it.Correct > 32 || it.Rate != 0.1 ||
			!(mean > 0.01 && mean < 5) {
			t.Errorf("iteration %d: %+v", i, it)
		}
	}
}

// All ranks end after the same iteration: by the budget of updates or of samples, which all know, or when rank 0 asks for it.
func TestAllreduceStopsEverybodyAtOnce(t *testing.T) {
	for _, c := range []struct {
		set     string
		stopAt  int64 // rank 0 asks after this iteration; 0: never
		version int64
	}{
		{"train.stop={updates: 7}", 0, 7},
		{"train.stop={samples: 100}", 0, 5}, // 24 in each
		{"train.stop={epochs: 1000}", 4, 6}, // the request travels with the next sums
	} {
		all := reduce(t, load(t, c.set), "aaa", func(a *AllReduce, i Iteration) {
			if i.Version == c.stopAt {
				a.Stop()
			}
		})
		if got := all[0].version; got != c.version && (c.stopAt == 0 || got != c.version-1) {
			t.Errorf("%s: ended after %d iterations, want %d", c.set, got, c.version)
		}
	}
}

// Snapshots are taken after the samples that the configuration names, and no more are kept than have room.
func TestSnapshotsOfAnAllreduce(t *testing.T) {
	c := load(t, "train.stop={updates: 11}", "evaluate={every_samples: 48, where: online}")
	all := reduce(t, c, "aaa", func(a *AllReduce, i Iteration) {
		if a.station.SnapshotsMax = 2; i.Version == 7 { // one was left out
			a.Forget(0)
		}
	})
	if want := []int64{48, 96, 192}; !slices.Equal(all[0].snapshots, want) {
		t.Errorf("snapshots after %v samples, want %v", all[0].snapshots, want)
	}
}

// noCollective is a Transport without a collective.
type noCollective struct{ comm.Transport }

func TestAllreduceNeedsACollective(t *testing.T) {
	ts := stationtest.Transports("aa")
	for i := range ts {
		ts[i] = noCollective{ts[i]}
	}
	errs := stationtest.World{Config: load(t), Hosts: "aa", Transports: ts}.Each(t, func(st *station.Station) error {
		return trainOn(st, &ended{}, train.Options{Device: cpu.New(1)}, nil)
	})
	for rank, err := range errs {
		var aborted *comm.AbortError
		if err == nil || !strings.Contains(err.Error(), "has no collective sum") && !errors.As(err, &aborted) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// A rank that waits for the others says so once for each iteration, and after the longer limit gives the reason to end the run. While it
// computes, and for what was before this process was awake, it says nothing.
func TestAWaitInAnAllreduceIsExplained(t *testing.T) {
	stationtest.World{Config: load(t), Hosts: "a"}.Must(t, func(st *station.Station) error {
		device := cpu.New(1)
		w, err := train.New(st, train.Options{Device: device})
		if err != nil {
			return errors.Join(err, device.Close())
		}
		defer w.Close()
		a, err := New(st, w, nil, nil)
		if err != nil {
			return err
		}
		defer a.Close()
		a.begin()
		st.Mu.Lock()
		defer st.Mu.Unlock()
		w.Iterate(0)
		if err := st.Net.Drive(func() bool { return a.inFlight == 0 }); err != nil {
			return err
		}
		if _, waits := w.Waits(); !waits {
			return errors.New("the worker does not wait after its iteration")
		}
		time.Sleep(2 * time.Millisecond)
		limits := configs.Stall{Warn: time.Millisecond, Abort: time.Hour}
		const says = "worker 0 has waited 0s for the other ranks in the all-reduce of iteration 0"
		for i, want := range []string{says, ""} {
			if warning, abort := a.Stalled(limits, 0); warning != want || abort != "" {
				t.Errorf("call %d: %q and %q, want %q", i, warning, abort, want)
			}
		}
		limits.Abort = time.Millisecond
		if warning, abort := a.Stalled(limits, 0); warning != "" || abort != says {
			t.Errorf("after the limit: %q and %q", warning, abort)
		}
		if _, abort := a.Stalled(limits, st.Transport.Now()+time.Hour); abort != "" {
			t.Errorf("of a process that was just awake: %q", abort)
		}
		if s := a.Status(); s.Name != "w0" || fmt.Sprint(s.Others) != "[the other ranks in the all-reduce]" {
			t.Errorf("status %+v", s)
		}
		return nil
	})
}
