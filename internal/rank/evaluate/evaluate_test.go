package evaluate_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/shard"
	"fluentps/internal/rank/evaluate"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// data is a test set of three batches, the last of which is not full, and a model for it.
var data = []string{"data={set: generated, rows: 480, test_rows: 700, features: 37, classes: 5}", "model={name: mlp, layers: [19]}"}

// rowsMax is the batch of an evaluation of this model.
const rowsMax = 256

// broken is the version whose parameters are not numbers.
const broken = 7

// parametersOf are those of a version that servers keep: the model begins with another seed in each.
func parametersOf(st *station.Station, k int64) []float32 {
	arena := make([]float32, st.Plan.Arena)
	for i, v := range st.Plan.Views(arena) {
		workload.Fill(v, uint64(100+k), st.Model.Architecture.Params()[i], 0)
	}
	if k == broken {
		arena[0] = float32(math.NaN())
	}
	return arena
}

// keep has a rank that serves answer for its part of each version.
func keep(st *station.Station, versions []int64) error {
	server := st.Roles.Server(st.Me)
	if server < 0 {
		return nil
	}
	kept := map[int64]*comm.Buf{}
	for _, k := range versions {
		b, err := st.Transport.Alloc(st.Plan.Arena * shard.ElemBytes)
		if err != nil {
			return err
		}
		for _, id := range st.Plan.OfServer(int32(server)) { // nothing else is right in it
			sh := &st.Plan.Shards[id]
			copy(b.F32()[sh.Lo:sh.Hi], parametersOf(st, k)[sh.Lo:sh.Hi])
		}
		kept[k] = b
	}
	st.Net.Handle(wire.Snapshot, func(from int, m *wire.Record) {
		for _, id := range st.Plan.OfServer(int32(server)) {
			for _, p := range st.Plan.Shards[id].Pieces {
				off, n := p.InArena()
				st.Net.Hold()
				st.Transport.Isend(comm.Peer(from), comm.Data, link.TagSnapshot|uint32(p.ID), kept[m.SnapshotIndex()], off, n, func(d comm.Done) {
					st.Net.Let()
					st.Net.Fail(d.Err)
				})
			}
		}
	})
	return nil
}

// world is ranks that evaluate.
type world struct {
	ranks    int
	set      []string
	versions []int64
	device   func(rank int) kernels.Device // nil: the processor
	halted   *atomic.Bool                  // nil: never
	rows     *atomic.Int64                 // counts the rows of the test set that are read; may be nil
}

// counted counts the rows that are read.
type counted struct {
	dataset.Table
	rows *atomic.Int64
}

func (c counted) Fill(x []float32, y []int32, rows []int32) {
	c.rows.Add(int64(len(rows)))
	c.Table.Fill(x, y, rows)
}

// each calls do on every rank, with its evaluator.
func (w world) each(t *testing.T, do func(*station.Station, *evaluate.Evaluator) error) []error {
	t.Helper()
	o := evaluate.Options{Halted: w.halted}
	if o.Halted == nil {
		o.Halted = new(atomic.Bool)
	}
	of := stationtest.World{Config: configstest.Load(t, append(w.set, data...)...), Hosts: stationtest.OneHost(w.ranks)}
	if w.rows != nil {
		of.Load = func(_ int, spec dataset.Spec) (*dataset.Set, error) {
			set, err := configstest.Data(spec)
			if err != nil {
				return nil, err
			}
			mine := *set
			mine.Test = counted{set.Test, w.rows}
			return &mine, nil
		}
	}
	return of.Each(t, func(st *station.Station) error {
		if err := errors.Join(keep(st, w.versions), st.Transport.Barrier()); err != nil {
			return err
		}
		own := o
		own.Device = func() (kernels.Device, error) {
			if w.device != nil {
				return w.device(st.Me), nil
			}
			return cpu.New(1), nil
		}
		e, err := evaluate.New(st, own)
		if err != nil {
			return err
		}
		err = do(st, e)
		e.Close()
		return errors.Join(err, st.Net.Err())
	})
}

// plainly evaluates a version batch by batch, with the model alone.
func plainly(st *station.Station, k int64) (s evaluate.Sum, err error) {
	device := cpu.New(1)
	defer func() { err = errors.Join(err, device.Close()) }()
	model, err := workload.NewModel(st.Config.ModelSpec(), st.Set.Samples(), device, rowsMax)
	if err != nil {
		return s, err
	}
	model.Bind(st.Plan.Views(parametersOf(st, k)), nil)
	batch := workload.NewBatch(st.Config.Model.Name, st.Set.Samples(), rowsMax)
	for from := 0; from < st.Set.Test.Rows(); from += rowsMax {
		var rows []int32
		for row := from; row < min(from+rowsMax, st.Set.Test.Rows()); row++ {
			rows = append(rows, int32(row))
		}
		batch.Take(st.Set.Test, rows)
		loss, correct, err := model.Eval(batch)
		if err != nil {
			return s, err
		}
		s.Loss += loss
		s.Correct += int64(correct)
	}
	return s, nil
}

func isSame(a, b evaluate.Sum) bool {
	return (a.Loss == b.Loss || math.IsNaN(a.Loss) && math.IsNaN(b.Loss)) && a.Correct == b.Correct
}

// An evaluation has the same bits whichever ranks compute it: all of any number of ranks, or rank 0 alone; and they are those of the model
// on one batch after the other, also where the loss is not finite.
func TestEvaluationsAreTheSameWhoeverLooks(t *testing.T) {
	versions := []int64{0, 4, broken, -1}
	for _, c := range []struct {
		name  string
		ranks int
		set   []string
	}{
		{"one server", 5, []string{"cluster.servers=1"}},
		{"two ranks, and so fewer than batches", 2, []string{"cluster.servers=1"}},
		{"five servers, and so more ranks than batches", 9, []string{"cluster.servers=5"}},
		{"ranks that do both", 4, []string{"cluster.placement=colocate"}},
		{"many pieces", 6, []string{"shards={slice: slices, max_bytes: 64B}"}},
	} {
		var together, alone, plain []evaluate.Sum
		errs := world{ranks: c.ranks, set: c.set, versions: versions}.each(t, func(st *station.Station, e *evaluate.Evaluator) error {
			sums, err := e.Together(versions, func() bool { return true })
			if err != nil || st.Me != 0 {
				if len(sums) > 0 {
					t.Errorf("%s: rank %d has sums, which are those of rank 0", c.name, st.Me)
				}
				return err
			}
			together = sums
			for _, k := range versions {
				p, err := plainly(st, k)
				if err := errors.Join(err, e.FetchAndWait(k)); err != nil {
					return err
				}
				a, err := e.Alone()
				if err != nil {
					return err
				}
				plain, alone = append(plain, p), append(alone, a)
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if len(together) != len(versions) {
			t.Fatalf("%s: %d sums of %d versions", c.name, len(together), len(versions))
		}
		for i, want := range plain {
			if finite := !math.IsNaN(want.Loss); finite != (versions[i] != broken) || finite && i > 0 && want == plain[0] {
				t.Fatalf("version %d: %+v; the test compares nothing", versions[i], want)
			}
			if !isSame(together[i], want) || !isSame(alone[i], want) {
				t.Errorf("%s, version %d: %+v of all ranks, %+v of rank 0, want %+v", c.name, versions[i], together[i], alone[i], want)
			}
		}
	}
}

// An evaluation that is not wanted any more ends on all ranks, after the version in progress, and that version has no sum.
func TestAnEvaluationThatIsNotWantedEndsOnAllRanks(t *testing.T) {
	versions := []int64{0, 1, 2}
	var rows atomic.Int64
	var mu sync.Mutex
	asked, got := 0, map[int]int{}
	errs := world{ranks: 6, versions: versions, rows: &rows}.each(t, func(st *station.Station, e *evaluate.Evaluator) error {
		sums, err := e.Together(versions, func() bool { asked++; return asked < 2 })
		mu.Lock()
		defer mu.Unlock()
		got[st.Me] = len(sums)
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprint(map[int]int{0: 1, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0}); fmt.Sprint(got) != want || rows.Load() != 2*700 {
		t.Errorf("sums %v by rank, want %s; %d rows of the test set were read, want those of two versions", got, want, rows.Load())
	}
}

// A run that was halted computes no more batches: neither the rest of those of all ranks, nor of rank 0 alone.
func TestAHaltedRunComputesNoMoreBatches(t *testing.T) {
	var rows atomic.Int64
	var halted atomic.Bool
	halted.Store(true)
	errs := world{ranks: 6, versions: []int64{0}, rows: &rows, halted: &halted}.each(t, func(st *station.Station,
		e *evaluate.Evaluator) error {
		_, err := e.Together([]int64{0}, func() bool { return false })
		if err == nil && st.Me == 0 {
			_, err = e.Alone()
		}
		return err
	})
	if err := errors.Join(errs...); err != nil || rows.Load() != 0 {
		t.Errorf("%d rows were read; %v", rows.Load(), err)
	}
}

// failing is a device that fails from a launch of a kernel on.
type failing struct {
	kernels.Device
	left *int
}

func (f failing) Launch(k *kernels.Kernel, a kernels.Args) error {
	if *f.left--; *f.left < 0 {
		return errors.New("the device has gone")
	}
	return f.Device.Launch(k, a)
}

// A device that fails in an evaluation ends it with the rank and the rows.
func TestAnEvaluationThatFailsNamesTheRankAndTheRows(t *testing.T) {
	var launches atomic.Int64
	count := func(int) kernels.Device { return counting{cpu.New(1), &launches} }
	alone := world{ranks: 2, set: []string{"cluster.servers=1"}, versions: []int64{0}}
	alone.device = count
	if err := errors.Join(alone.each(t, func(st *station.Station, e *evaluate.Evaluator) error {
		if st.Me != 0 {
			return nil
		}
		err := e.FetchAndWait(0)
		if err == nil {
			_, err = e.Alone()
		}
		return err
	})...); err != nil {
		t.Fatal(err)
	}
	batch := int(launches.Load()) / 3 // rank 1 of 2 has two of the three
	alone.device = func(rank int) kernels.Device {
		left := math.MaxInt
		if rank == 1 {
			left = batch
		}
		return failing{cpu.New(1), &left}
	}
	errs := alone.each(t, func(_ *station.Station, e *evaluate.Evaluator) error {
		_, err := e.Together([]int64{0}, func() bool { return true })
		return err
	})
	const want = "rank 1: evaluation of test rows 512 to 699: "
	if errs[1] == nil || !strings.Contains(errs[1].Error(), want) || !strings.Contains(errs[1].Error(), "the device has gone") {
		t.Errorf("rank 1 ends with %v, want %q", errs[1], want)
	}
}

// counting counts the kernels that are launched.
type counting struct {
	kernels.Device
	launches *atomic.Int64
}

func (c counting) Launch(k *kernels.Kernel, a kernels.Args) error {
	c.launches.Add(1)
	return c.Device.Launch(k, a)
}
