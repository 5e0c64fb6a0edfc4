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

	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/ps/scheme"
	"fluentps/ps/workload/dataset"
)

// step is one event of a scheme, and the decisions of the scheme.
type step struct {
	Event     scheme.Event
	Decisions []scheme.Decision
}

// record is all steps of the schemes, per shard in order.
type record []step

func (r *record) add(ev scheme.Event, ds []scheme.Decision) {
	*r = append(*r, step{ev, slices.Clone(ds)})
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

// recordSimulated runs the same configuration in virtual time and returns its record.
func recordSimulated(t *testing.T, workers int, set ...string) record {
	t.Helper()
	c := parse(append(set, fmt.Sprintf("simulate.workers=%d", workers)))
	data, err := dataset.Load(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	architecture, err := layout.Architecture(c, data)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := layout.Plan(c, architecture.Params(), c.Cluster.Servers, layout.Link{})
	if err != nil {
		t.Fatal(err)
	}
	var r record
	if _, err := check.Run(sim.Options{Config: c, Plan: plan, Rows: data.Train.Rows(), Decided: r.add}); err != nil {
		t.Fatal(err)
	}
	return r
}

// decided lists per shard the decisions of some kinds, as text without times, because these differ between drivers.
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

// under returns the settings for one scheme for all parameters, with an optimizer that the scheme accepts.
func under(name string) []string {
	set := []string{fmt.Sprintf("sync=[{match: '*', scheme: %s}]", name)}
	if e, _ := scheme.All.Lookup(name); e.OwnUpdate {
		set = append(set, "train.optimizer={name: sgd, lr: 0.1}")
	}
	if e, _ := scheme.All.Lookup(name); e.WorkPolicy() != "" {
		set = append(set, "work={policy: "+e.WorkPolicy()+", code: {stragglers: 0}}") // one worker has no others
	}
	return set
}

// If the order of arrivals is the same, so are the decisions under all drivers. With one worker only one order is possible, for every
// scheme. With several workers, bsp folds in rank order and commits when all pushes have arrived.
func TestDriversDecideAlike(t *testing.T) {
	all := []scheme.DecisionKind{scheme.Fold, scheme.Drop, scheme.Commit, scheme.Reply}
	for _, c := range []struct {
		workers int
		kinds   []scheme.DecisionKind
		schemes []string
	}{
		{1, all, scheme.All.Names()},
		{mpitest.Built.Ranks(6) - 2, []scheme.DecisionKind{scheme.Fold, scheme.Drop, scheme.Commit}, []string{"bsp", "drop"}},
	} {
		var sets [][]string
		for _, name := range c.schemes {
			if name == "essp" {
				name += ", staleness: 0" // otherwise the worker continues for a while before the stop reaches it
			}
			sets = append(sets, append(under(name), "train.stop.updates=12"))
		}
		over := recordsOverMPI(t, 2+c.workers, sets)
		for k, name := range c.schemes {
			t.Run(fmt.Sprintf("%d workers %s", c.workers, name), func(t *testing.T) {
				want := recordSimulated(t, c.workers, sets[k]...).decided(c.kinds...)
				_, local := recordInProcess(t, 2+c.workers, sets[k]...)
				same(t, "in process", local.decided(c.kinds...), want)
				same(t, "over MPI", over[k].decided(c.kinds...), want)
			})
		}
	}
}

// The decisions of a scheme follow from its events alone: a new instance that gets the events recorded under mpirun, in one process
// or in the simulator decides the same, including times and coins.
func TestRecordsReplay(t *testing.T) {
	ranks := mpitest.Built.Ranks(6)
	workers := ranks - 2
	var sets [][]string
	for _, e := range scheme.All {
		set := append(under(e.Name), "train.stop={samples: 1200}", "faults=[{worker: 1, slow: {sleep: 1ms}}]")
		if e.WorkPolicy() != "" && workers > 1 {
			set = append(set, "work.code.stragglers=1")
		}
		sets = append(sets, set)
	}
	over := recordsOverMPI(t, ranks, sets)
	for k, e := range scheme.All {
		t.Run(e.Name, func(t *testing.T) {
			set := sets[k]
			_, local := recordInProcess(t, ranks, set...)
			for what, r := range map[string]record{"in process": local, "over MPI": over[k], "simulated": recordSimulated(t, workers, set...)} {
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
	decoder, err := (&build.Run{Config: c, Roles: shard.Roles{Workers: make([]int, workers)}}).Decoder()
	if err != nil {
		t.Fatal(err)
	}
	for k, e := range r {
		s := again[e.Event.Shard]
		if s == nil {
			made, err := inturn.NewShardSchemes([]scheme.Phase{{Scheme: rule.Scheme, Common: rule.Common, Params: rule.Params}},
				scheme.Env{Workers: workers, Shards: []int32{e.Event.Shard}, Server: int(e.Event.Shard), Servers: 2, Seed: c.Seed, Code: decoder}, 0)
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
