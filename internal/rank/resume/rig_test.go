package resume

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/steps"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/internal/rank/train"
	"fluentps/internal/show/metrics"
	"fluentps/kernels/cpu"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// left is a checkpoint as the sides of a run leave it. No training lies behind it: only its counts say so, and its values are
// those of rows that are told apart.
type left struct {
	config    *configs.Config
	ranks     int
	iteration int64
	number    string // the name of its folder
	dir       string // the run folder
}

// leave writes the checkpoint of a run into its folder, after those that are there.
func leave(t testing.TB, dir string, c *configs.Config, ranks int, iteration int64) left {
	t.Helper()
	w := stationtest.World{Config: c, Hosts: stationtest.OneHost(ranks)}
	folder, err := metrics.OpenRunFolder(dir)
	if err != nil {
		if folder, err = metrics.CreateRunFolder(metrics.FolderSpec{Out: dir}); err == nil {
			err = folder.Write(metrics.RunInfoName, []byte("{}\n"))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	run := folder.Folder
	draft, err := checkpoint.Begin(run, "start")
	if err != nil {
		t.Fatal(err)
	}
	in := run.In(filepath.Join(checkpoint.Folder, checkpoint.DraftName("start")))
	defer in.Close()
	var mu sync.Mutex
	m := &checkpoint.Manifest{Start: "start", Build: "test", Iteration: iteration, Digest: configs.Hash(c), Config: configs.Values(c)}
	state := LeadState{Version: iteration}
	w.Must(t, func(st *station.Station) error {
		files, worker, err := filesOf(st, in, iteration)
		mu.Lock()
		defer mu.Unlock()
		m.Files = append(m.Files, files...)
		if worker != nil {
			if n := int64(len(st.Roles.Workers)); state.Accepted == 0 {
				state.Accepted, m.Samples = iteration*n, iteration*n*int64(c.Train.BatchPerWorker)
				state.Arena = ArenaOf(st.Plan)
				state.Loss.Rows = int64(st.Set.Train.Rows())
				dealer, failed := c.NewDealer(st.Roles.Computes(), st.Set.Train.Rows(), nil, iteration)
				if err = errors.Join(err, failed); dealer != nil {
					state.Work = dealer.Save()
				}
				m.Servers, m.Workers, m.Computing = len(st.Roles.Servers), int(n), st.Roles.Computes()
				m.Data, m.Starts = st.Set.SHA256(), slices.Repeat([]int64{iteration}, int(n))
			}
		}
		return err
	})
	slices.SortFunc(m.Files, func(a, b checkpoint.Entry) int { return strings.Compare(a.Name, b.Name) })
	if m.State, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	at, err := draft.Finish(m)
	if err != nil {
		t.Fatal(err)
	}
	return left{config: c, ranks: ranks, iteration: iteration, number: filepath.Base(at), dir: dir}
}

// filesOf writes the files of a rank after so many iterations.
func filesOf(st *station.Station, in *durable.Folder, iteration int64) (files []checkpoint.Entry, worker *train.State, err error) {
	n := int64(len(st.Roles.Workers))
	put := func(name string, state any, vectors [][]float32) {
		e, failed := checkpoint.WriteFile(in, name, state, vectors...)
		files, err = append(files, e), errors.Join(err, failed)
	}
	if server := st.Roles.Server(st.Me); server >= 0 && len(st.Plan.OfServer(int32(server))) > 0 {
		s, err := serve.New(st, serve.Options{})
		if err != nil {
			return nil, nil, err
		}
		defer s.Close()
		state, vectors := s.Save()
		for i := range state.Shards {
			sh := &state.Shards[i]
			sh.Steps = iteration
			sh.Node.Version, sh.Node.Closed, sh.Node.Rated, sh.Node.Accepted = iteration, iteration, iteration*n, iteration*n
			sh.Node.Samples = iteration * n * int64(st.Config.Train.BatchPerWorker)
			if st.Config.Awaits() != nil {
				sh.Node.Changes, sh.Node.Began = 1, iteration/2
			}
		}
		at := 0
		for i := range state.Shards {
			for k := range state.Shards[i].Vectors {
				mark(vectors[at], state.Shards[i].Lo, k)
				at++
			}
		}
		put(checkpoint.ServerFile(server), state, vectors)
	}
	if w := st.Roles.Worker(st.Me); w >= 0 {
		device := cpu.New(1)
		s, err := train.New(st, train.Options{Device: device})
		if err != nil {
			return nil, nil, errors.Join(err, device.Close())
		}
		defer s.Close()
		state, vectors, err := s.Save()
		if err != nil {
			return nil, nil, err
		}
		state.Next, worker = iteration, &state
		if n := len(vectors); n > 1 || n == 1 && !state.Residual { // of an optimizer of its own
			state.Steps = iteration
		}
		if state.Own != nil {
			own(state.Own, st, iteration)
			state.Steps = state.Own.Step
		}
		for i := range state.Tallies {
			state.Tallies[i].Iterations, state.Tallies[i].Samples = 2, 20
			state.Tallies[i].Took, state.Tallies[i].Times = 3, []time.Duration{1, 2}
		}
		for k, v := range vectors {
			mark(v, 0, 10*w+k)
		}
		put(checkpoint.WorkerFile(w), state, vectors)
	}
	return files, worker, err
}

// mark gives each element of a vector a value of its own, which is that of its place in the model.
func mark(v []float32, lo, vector int) {
	for i := range v {
		v[i] = float32(1000*vector+lo+i) / 1024
	}
}

// own are the counts of a worker that has taken whole rounds of its own steps.
func own(count *steps.Count, st *station.Station, iteration int64) {
	round := int64(st.Config.Local.Steps)
	count.Step, count.Pushed, count.Last = iteration*round, iteration*round, iteration-1
	count.Round, count.Done = round, round
}

// found is what the ranks of a run that resumes have found.
type found struct {
	origins []*Origin
	errs    []error
	said    string
}

// search is a run that resumes: from a folder or a checkpoint, with these keys changed.
type search struct {
	resume string
	out    string // the run folder, for Auto
	allow  []string
	hosts  string                                // "": one host
	memory string                                // a folder for the memory of each host, by its letter
	then   func(*station.Station, *Origin) error // what the rank does with it; nil: nothing
}

// restore has all ranks of a run search for its checkpoint and read it.
func (s search) restore(t testing.TB, c *configs.Config, ranks int) found {
	t.Helper()
	var said lines
	f := found{origins: make([]*Origin, ranks)}
	w := stationtest.World{Config: c, Hosts: cmp.Or(s.hosts, stationtest.OneHost(ranks)), Warn: &said}
	f.errs = w.Each(t, func(st *station.Station) error {
		r := New(st, Options{Resume: s.resume, AllowChanged: s.allow, Memory: filepath.Join(s.memory, st.Hosts[st.Me]),
			Folder: &metrics.FolderSpec{Out: s.out}})
		var problem error
		if st.Me == 0 {
			folder, err := r.TakeFolder()
			if err == nil {
				r.Dir, err = folder.Dir, folder.Close()
			}
			problem = err
		}
		if err := st.Net.Agree(problem, station.CodeUsage); err != nil {
			return err
		}
		if err := link.Spread(st.Net, &r.Dir); err != nil {
			return err
		}
		from, err := r.Restore()
		if f.origins[st.Me] = from; err != nil || s.then == nil {
			return err
		}
		return s.then(st, from)
	})
	f.said = said.String()
	return f
}

// mustRefuse fails unless all ranks have returned an error that says this.
func (f found) mustRefuse(t testing.TB, says string) {
	t.Helper()
	for rank, err := range f.errs {
		var agreed *station.ExitError
		if !errors.As(err, &agreed) || agreed.Code != station.CodeUsage || !strings.Contains(err.Error(), says) {
			t.Fatalf("rank %d: %v\nwant %q with code %d", rank, err, says, station.CodeUsage)
		}
	}
}

// mustTake fails unless all ranks have read the checkpoint of this number.
func (f found) mustTake(t testing.TB, number string) {
	t.Helper()
	if err := errors.Join(f.errs...); err != nil {
		t.Fatal(err)
	}
	for rank, q := range f.origins {
		if q == nil || filepath.Base(q.Dir) != number {
			t.Errorf("rank %d has read %+v, want checkpoint %s", rank, q, number)
		}
	}
}

type lines = stationtest.Lines

// copied is a copy of a run folder.
func copied(t testing.TB, from string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return configstest.Load(t, set...)
}

// at is the path of a checkpoint of a run.
func at(dir string, number int) string {
	return filepath.Join(dir, checkpoint.Folder, fmt.Sprintf("%012d", number))
}
