//go:build mpi

package mpi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"testing"

	"fluentps/comm/mpi/mpitest"
	"fluentps/kernels/cpu"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/scheme"
	"fluentps/ps/sim"
	"fluentps/ps/workload"
)

// told is one event that a scheme was told, and what it decided.
type told struct {
	Event     scheme.Event
	Decisions []scheme.Decision
}

// record is all that schemes were told, per shard in order.
type record []told

func (r *record) add(ev scheme.Event, ds []scheme.Decision) {
	*r = append(*r, told{ev, slices.Clone(ds)})
}

func (r record) write(out string, rank int) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(fmt.Sprintf("%s.%d", out, rank), data, 0o600)
}

func readRecords(t *testing.T, out string, ranks int) (all record) {
	t.Helper()
	for rank := range ranks {
		data, err := os.ReadFile(fmt.Sprintf("%s.%d", out, rank))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var r record
		if err == nil {
			err = json.Unmarshal(data, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r...)
	}
	return all
}

// recordSimulated runs the same configuration in virtual time.
func recordSimulated(t *testing.T, workers int, set ...string) record {
	t.Helper()
	c := parse(append(set, fmt.Sprintf("simulate.workers=%d", workers)))
	data, err := workload.Load(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	m, err := workload.NewModel(workload.ModelSpec{Name: c.Model.Name, Layers: c.Model.Layers}, data.Samples(), cpu.New(1), 1)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := layout.Plan(c, workload.Params(m), c.Cluster.Servers)
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if _, err := sim.Run(sim.Options{Config: c, Plan: plan, Rows: data.Train.Rows(), Decided: r.add}); err != nil {
		t.Fatal(err)
	}
	return r
}

// decided lists per shard the decisions of some kinds, as text: no times, which differ from driver to driver.
func (r record) decided(kinds ...scheme.DecisionKind) map[int32][]string {
	list := map[int32][]string{}
	for _, e := range r {
		for _, d := range e.Decisions {
			if slices.Contains(kinds, d.Kind) {
				list[d.Shard] = append(list[d.Shard], d.String())
			}
		}
	}
	return list
}

func same(t *testing.T, what string, got, want map[int32][]string) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: decisions for %d shards, want %d", what, len(got), len(want))
	}
	for shard, list := range want {
		for k := range max(len(list), len(got[shard])) {
			if k >= len(list) || k >= len(got[shard]) || got[shard][k] != list[k] {
				t.Fatalf("%s: shard %d: %d decisions, want %d; from the %d. on\n%q\nwant\n%q", what, shard, len(got[shard]), len(list), k,
					got[shard][min(k, len(got[shard])):min(k+3, len(got[shard]))], list[min(k, len(list)):min(k+3, len(list))])
			}
		}
	}
}

// under is the setting for one scheme for all parameters, with an optimizer that it can do with.
func under(name string) []string {
	set := []string{fmt.Sprintf("sync=[{match: '*', scheme: %s}]", name)}
	if e, _ := scheme.Lookup(name); e.OwnUpdate {
		set = append(set, "train.optimizer={name: sgd, lr: 0.1}")
	}
	return set
}

// Where the order of arrivals is the same, so are the decisions, whatever drives the nodes. With one worker only one
// order is possible, for every scheme; with several, bsp folds in rank order and commits when all are there.
func TestDriversDecideAlike(t *testing.T) {
	all := []scheme.DecisionKind{scheme.Fold, scheme.Drop, scheme.Commit, scheme.Reply}
	for _, c := range []struct {
		workers int
		kinds   []scheme.DecisionKind
		schemes []string
	}{
		{1, all, scheme.Names()},
		{mpitest.Built.Ranks(6) - 2, []scheme.DecisionKind{scheme.Fold, scheme.Drop, scheme.Commit}, []string{"bsp", "drop"}},
	} {
		for _, name := range c.schemes {
			t.Run(fmt.Sprintf("%d workers %s", c.workers, name), func(t *testing.T) {
				if name == "essp" {
					name += ", staleness: 0" // else the worker runs on for a while when the stop is on its way to it
				}
				set := append(under(name), "train.stop.updates=12")
				want := recordSimulated(t, c.workers, set...).decided(c.kinds...)
				_, local := recordInProcess(t, 2+c.workers, set...)
				same(t, "in process", local.decided(c.kinds...), want)
				_, mpi := recordOverMPI(t, 2+c.workers, set...)
				same(t, "over MPI", mpi.decided(c.kinds...), want)
			})
		}
	}
}

// What a scheme decides follows from its events alone: a new instance that is told what was recorded under mpirun, in
// one process or in the simulator decides the same, times, coins and all.
func TestRecordsReplay(t *testing.T) {
	ranks := mpitest.Built.Ranks(6)
	workers := ranks - 2
	for _, e := range scheme.All {
		t.Run(e.Name, func(t *testing.T) {
			set := append(under(e.Name), "train.stop={samples: 1200}", "faults=[{worker: 1, slow: {sleep: 1ms}}]")
			_, local := recordInProcess(t, ranks, set...)
			_, mpi := recordOverMPI(t, ranks, set...)
			for what, r := range map[string]record{"in process": local, "over MPI": mpi, "simulated": recordSimulated(t, workers, set...)} {
				replays(t, what, r, workers, set)
			}
		})
	}
}

func replays(t *testing.T, what string, r record, workers int, set []string) {
	t.Helper()
	c := parse(set)
	rule := c.Sync[0]
	again := map[int32]scheme.Scheme{}
	for k, e := range r {
		s := again[e.Event.Shard]
		if s == nil {
			made, err := core.NewShardSchemes([]scheme.Phase{{Scheme: rule.Scheme, Common: rule.Common, Params: rule.Params}}, scheme.Env{Workers: workers, Shards: []int32{e.Event.Shard}, Server: int(e.Event.Shard), Servers: 2, Seed: c.Seed})
			if err != nil {
				t.Fatal(err)
			}
			s = made.Scheme
			again[e.Event.Shard] = s
		}
		if got := s.Step(e.Event, nil); fmt.Sprint(got) != fmt.Sprint(e.Decisions) {
			t.Fatalf("%s: event %d of %d, %v: decided %v, replayed %v", what, k, len(r), e.Event, e.Decisions, got)
		}
	}
	if len(again) != 2 {
		t.Fatalf("%s: events of %d shards, want 2", what, len(again))
	}
}
