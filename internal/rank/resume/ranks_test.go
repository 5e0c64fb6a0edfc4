package resume

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
)

// arenas are the vectors of all shards of a run that resumes, by their number and place in the model.
func arenas(t *testing.T, q found, elements int) (all [][]float32) {
	t.Helper()
	for _, origin := range q.origins {
		vectors := origin.ServerVectors
		for _, sh := range origin.Server.Shards {
			for k := range sh.Vectors {
				if len(all) <= k {
					all = append(all, slices.Repeat([]float32{-1}, elements))
				}
				copy(all[k][sh.Lo:sh.Hi], vectors[k])
			}
			vectors = vectors[sh.Vectors:]
		}
	}
	return all
}

// Other ranks read a checkpoint of 2 servers and 4 workers to the bit, whatever their shards: the parameters and the state of
// the optimizer. Counts become those of their number of workers.
func TestACheckpointIsReadByOtherRanks(t *testing.T) {
	same := []string{"train.optimizer={name: adam, lr: 0.01}", "model={name: mlp, layers: [24, 16]}",
		`sync=[{match: "*.bias", scheme: bsp}, {match: "*", scheme: ssp, staleness: 0, fold: rank}]`}
	dir := filepath.Join(t.TempDir(), "out")
	leave(t, dir, load(t, same...), 6, 20)
	elements := 0
	whole := search{resume: dir, then: func(st *station.Station, _ *Origin) error {
		if st.Me == 0 {
			elements = st.Plan.Arena
		}
		return nil
	}}.restore(t, load(t, same...), 6)
	whole.mustTake(t, "000000000001")
	want := arenas(t, whole, elements)
	if len(want) != 3 || slices.Contains(want[0], -1) || want[2][5] == want[1][5] {
		t.Fatalf("%d vectors, %v", len(want), want[0])
	}
	for _, c := range []struct {
		servers, workers int
		allow, set       []string
	}{
		{3, 4, []string{"cluster.servers"}, nil},
		{1, 4, []string{"cluster.servers", "shards.slice"}, []string{"shards.slice=layer"}},
		{2, 4, []string{"shards.max_bytes", "shards.slice", "cluster.placement"},
			[]string{"shards={slice: slices, max_bytes: 128B}", "cluster.placement=pack"}},
		{3, 2, []string{"cluster.servers", "workers"}, nil},
		{2, 2, []string{"workers"}, nil},
		{1, 8, []string{"cluster.servers", "workers"}, nil},
	} {
		set := append(append(slices.Clone(same), fmt.Sprintf("cluster.servers=%d", c.servers)), c.set...)
		f := search{resume: dir, allow: c.allow}.restore(t, load(t, set...), c.servers+c.workers)
		f.mustTake(t, "000000000001")
		got := arenas(t, f, elements)
		for k := range want {
			if !slices.Equal(got[k], want[k]) {
				t.Errorf("%+v: vector %d differs", c, k)
			}
		}
		for rank, q := range f.origins {
			if q.State.Accepted != 20*int64(c.workers) || len(q.Starts) != c.workers || slices.Max(q.Starts) != 20 || slices.Min(q.Starts) != 20 {
				t.Errorf("%+v, rank %d: %d pushes, starts %v", c, rank, q.State.Accepted, q.Starts)
			}
			for _, sh := range q.Server.Shards {
				if n := sh.Node; n.Version != 20 || n.Accepted != 20*int64(c.workers) || n.Rated != n.Accepted || sh.Steps != 20 || n.Samples != 640 {
					t.Errorf("%+v, shard %s: %d steps, %+v", c, sh.Name, sh.Steps, n)
				}
			}
		}
	}
}

// After a resume the sides of a rank hold what the checkpoint has: it is written again with the same state and vectors.
func TestSidesHoldWhatTheCheckpointHas(t *testing.T) {
	for _, set := range [][]string{
		{"train.optimizer={name: momentum, lr: 0.05}"},
		{"train.optimizer={name: adam, lr: 0.01}", `sync=[{match: "*.bias", scheme: bsp}, {match: "*", scheme: bsp, push: delta}]`},
		{"payload={push: topk, ratio: 0.1}", "shards.max_bytes=64B"},
		stepping("local={policy: hpsgd, steps: 3}"),
	} {
		dir := filepath.Join(t.TempDir(), "out")
		leave(t, dir, load(t, set...), 6, 9)
		search{resume: dir, then: func(st *station.Station, q *Origin) error {
			if st.Roles.Server(st.Me) >= 0 {
				s, err := serve.New(st, serve.Options{Start: q.Start()})
				if err != nil {
					return err
				}
				defer s.Close()
				wantVectors := slices.Clone(q.ServerVectors)
				s.Resume(q.Start(), q.Server, q.ServerVectors)
				state, vectors := s.Save()
				if fmt.Sprintf("%+v", state) != fmt.Sprintf("%+v", q.Server) {
					return fmt.Errorf("server: %+v, want %+v", state, q.Server)
				}
				return equalVectors(vectors, wantVectors)
			}
			w, err := workerOf(st, q)
			if err != nil {
				return err
			}
			defer w.Close()
			state, vectors, err := w.Save()
			if err != nil {
				t.Fatal(err)
			}
			if state.Next != q.Worker.Next || state.Residual != q.Worker.Residual || state.Steps != q.Worker.Steps ||
				fmt.Sprintf("%+v", state.Own) != fmt.Sprintf("%+v", q.Worker.Own) {
				return fmt.Errorf("worker: %+v, want %+v", state, q.Worker)
			}
			return equalVectors(vectors, q.WorkerVectors)
		}}.restore(t, load(t, set...), 6).mustTake(t, "000000000001")
	}
}

func equalVectors(got, want [][]float32) error {
	if !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
		return errors.New("the vectors differ from those of the checkpoint")
	}
	return nil
}
