//go:build mpi

package mpi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/comm/mpi"
	"fluentps/internal/comm/mpi/mpitest"
	"fluentps/internal/configs"
	"fluentps/internal/rank/runtime"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// childVar is the variable with the settings of a rank that this test starts under mpirun.
const childVar = "FLUENTPS_TEST_CHILD"

const text = `
name: same
seed: 5
cluster: {servers: 2}
data: {set: generated, rows: 640, test_rows: 100, features: 30, classes: 5}
model: {name: mlp, layers: [24, 16]}
train:
  batch_per_worker: 8
  optimizer: {name: momentum, lr: 0.05, momentum: 0.9, weight_decay: 0.001}
  stop: {updates: 40}
evaluate: {every_epochs: 1, where: after}
sync:
  - {match: "*", scheme: bsp}
`

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "" {
		os.Exit(m.Run())
	}
	child()
}

// child runs one rank under mpirun. Rank 0 writes its summary to the file that the parent names.
func child() {
	tr, err := mpi.Init(mpi.Options{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var job struct {
		Out         string
		Sets        [][]string // of the runs, one after the other
		Dir, Resume string     // the run folder, and the one to resume from; "": none
		Checkpoints int        // the run is interrupted when it has written so many; 0: it is not interrupted
		BreakIn     string     // where rank Breaks panics; "": nowhere
		Breaks      int
	}
	if err := json.Unmarshal([]byte(os.Getenv(childVar)), &job); err != nil {
		fmt.Fprintln(os.Stderr, err)
		tr.Abort(1)
	}
	code := runtime.CodeOK
	for k, set := range job.Sets {
		var rec record
		o := options(parse(set), tr, "mpi")
		o.Decided = rec.add
		if job.BreakIn != "" && job.Breaks == tr.Rank() {
			o.Load = breakIn(job.BreakIn)
		}
		if o.Resume = job.Resume; job.Dir != "" && tr.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: job.Dir}
			if o.Interrupt = interruptAtSignal(); job.Checkpoints > 0 {
				o.Interrupt = interruptAfter(job.Dir, job.Checkpoints)
			}
		}
		res, err := runtime.Run(o)
		if err == nil && tr.Rank() == 0 {
			err = written(outOf(job.Out, k), res.Summary)
		}
		if err = errors.Join(err, rec.write(outOf(job.Out, k), tr.Rank())); err != nil {
			fmt.Fprintln(os.Stderr, tr.Rank(), set, err)
			tr.Abort(1)
		}
		code = res.Code
	}
	if err := tr.Close(); errors.Is(err, comm.ErrStuck) {
		tr.Abort(code)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		tr.Abort(1)
	}
	os.Exit(code)
}

// outOf is the file with the summary of run k.
func outOf(out string, k int) string { return fmt.Sprintf("%s-%d", out, k) }

func written(out string, s *metrics.Summary) error {
	data, err := s.JSON()
	if err != nil {
		return err
	}
	return os.WriteFile(out, data, 0o600)
}

func parse(set []string) *configs.Config {
	c, _, diags := configs.Parse("same.yaml", []byte(text), configs.Options{Set: set})
	if diags.Failed() {
		panic(string(diags.JSON()))
	}
	return c
}

func options(c *configs.Config, tr comm.Transport, mode string) runtime.Options {
	return runtime.Options{Config: c, Hash: configs.Hash(c), Transport: tr, Mode: mode, Host: "here", PID: os.Getpid(),
		NewDevice: func() (kernels.Device, error) { return cpu.New(1), nil }, Lead: runtime.LeadOptions{Out: io.Discard}, Warn: os.Stderr}
}

func overMPI(t *testing.T, n int, set ...string) *metrics.Summary {
	t.Helper()
	s, _ := recordOverMPI(t, n, set...)
	return s
}

func recordOverMPI(t *testing.T, n int, set ...string) (*metrics.Summary, record) {
	t.Helper()
	return partOverMPI(t, n, "", "", 0, set...)
}

// partOverMPI runs a part of a run that has a folder: the first part, or if resume is set one that resumes. The run is interrupted
// when it has written so many checkpoints; with 0 it is not interrupted.
func partOverMPI(t *testing.T, n int, dir, resume string, checkpoints int, set ...string) (*metrics.Summary, record) {
	t.Helper()
	summaries, records := jobOverMPI(t, n, map[string]any{"Dir": dir, "Resume": resume, "Checkpoints": checkpoints}, set)
	return summaries[0], records[0]
}

// recordsOverMPI does runs one after the other in one job: what a job takes to start is more than such a run.
func recordsOverMPI(t *testing.T, n int, sets [][]string) []record {
	t.Helper()
	_, records := jobOverMPI(t, n, map[string]any{}, sets...)
	return records
}

// eachOverMPI are the summaries of runs that one job does one after the other.
func eachOverMPI(t *testing.T, n int, sets [][]string) []*metrics.Summary {
	t.Helper()
	summaries, _ := jobOverMPI(t, n, map[string]any{}, sets...)
	return summaries
}

func jobOverMPI(t *testing.T, n int, job map[string]any, sets ...[]string) (summaries []*metrics.Summary, records []record) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "summary.json")
	job["Out"], job["Sets"] = out, sets
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	code, said := mpitest.Built.Run(t, mpitest.Job{Ranks: n, Env: []string{childVar + "=" + string(text)}, Program: []string{os.Args[0]}})
	want := runtime.CodeOK
	if count, _ := job["Checkpoints"].(int); count > 0 {
		want = runtime.CodeAgain
	}
	if code != want {
		t.Fatalf("%d ranks %v: code %d, want %d\n%s", n, sets, code, want, said)
	}
	for k := range sets {
		data, err := os.ReadFile(outOf(out, k))
		if err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		var s metrics.Summary
		if err := json.Unmarshal(data, &s); err != nil {
			t.Fatal(err)
		}
		summaries, records = append(summaries, &s), append(records, readRecords(t, outOf(out, k), n))
	}
	return summaries, records
}

func inProcess(t *testing.T, n int, set ...string) *metrics.Summary {
	t.Helper()
	s, _ := recordInProcess(t, n, set...)
	return s
}

func recordInProcess(t *testing.T, n int, set ...string) (*metrics.Summary, record) {
	t.Helper()
	records := make([]record, n)
	results := make([]runtime.Result, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, tr := range inproc.New(n, inproc.Options{}) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			o := options(parse(set), tr, "local")
			o.Decided = records[i].add
			if results[i], errs[i] = runtime.Run(o); errs[i] != nil {
				tr.Abort(1)
			}
			errs[i] = errors.Join(errs[i], tr.Close())
		}()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results[0].Summary, slices.Concat(records...)
}

// BSP is exact over any transport, server count and placement: the same bits over MPI as in one process.
func TestBSPGivesTheSameBitsOverMPI(t *testing.T) {
	const most = 3 // servers
	workers := max(mpitest.Built.Ranks(4+most)-most, 2)
	want := inProcess(t, workers+1, "cluster.servers=1")
	for _, c := range []struct {
		servers int // ranks in addition to the workers
		set     []string
	}{
		{1, []string{"cluster.servers=1"}},
		{2, nil},
		{most, []string{"cluster.servers=3", "shards.slice=layer"}},
		{0, []string{"cluster.placement=colocate", "shards.max_bytes=1KiB"}},
		{2, []string{"cluster.shared_memory=off"}},
	} {
		ranks := workers + c.servers
		if ranks > mpitest.Built.MaxRanks {
			continue
		}
		s := overMPI(t, ranks, c.set...)
		if s.ParametersSHA256 != want.ParametersSHA256 {
			t.Errorf("%d ranks %v: sha256 %s, in process %s", ranks, c.set, s.ParametersSHA256, want.ParametersSHA256)
		}
		if off := slices.Contains(c.set, "cluster.shared_memory=off"); (s.BytesShared == 0) != off {
			t.Errorf("%d ranks %v: %d bytes were shared", ranks, c.set, s.BytesShared)
		}
		if s.Mode != "mpi" || s.Iterations != 40 || s.Samples != int64(40*8*workers) || s.MaxLead != 0 || s.BytesSent != s.BytesReceived {
			t.Errorf("%d ranks %v: summary %+v", ranks, c.set, s)
		}
	}
}

// Payloads other than float32 give the same bits over MPI as in one process.
func TestPayloadsGiveTheSameBitsOverMPI(t *testing.T) {
	ranks := mpitest.Built.Ranks(5)
	var sets [][]string
	for _, payload := range []string{"{push: float16, pull: float16}", "{push: bfloat16, pull: bfloat16}",
		"{push: topk, ratio: 0.1}", "{push: threshold, threshold: 0.05, ratio: 0.1, pull: bfloat16}"} {
		// pieces in frames, and on the data channel
		for _, set := range [][]string{{}, {"model={name: mlp, layers: [600]}", "train.stop={updates: 10}"}} {
			sets = append(sets, append(set, "payload="+payload))
		}
	}
	for k, s := range eachOverMPI(t, ranks, sets) {
		want := inProcess(t, ranks, sets[k]...)
		if s.ParametersSHA256 != want.ParametersSHA256 || s.BytesSent != want.BytesSent ||
			s.BytesReceived != s.BytesSent || !s.Payload.Lossy || s.Payload != want.Payload {
			t.Errorf("%v: sha256 %.12s, %d bytes sent, %d received, payload %+v; in process %.12s, %d, %+v",
				sets[k], s.ParametersSHA256, s.BytesSent, s.BytesReceived, s.Payload, want.ParametersSHA256, want.BytesSent, want.Payload)
		}
	}
}

// Runs over MPI with mixed schemes, a straggler, both kinds of roles and online evaluation finish, with every push folded once and
// every lead within its bound.
func TestMixedSchemesOverMPI(t *testing.T) {
	sets := [][]string{
		{"sync=[{match: 'fc3.*', scheme: bsp}, {match: '*', scheme: ssp, staleness: 2, release: lazy}]"},
		{"sync=[{match: '*', scheme: ssp, staleness: 3}]", "cluster.placement=colocate", "faults=[{worker: 1, slow: {sleep: 2ms}}]"},
		{"sync=[{match: '*', scheme: essp, staleness: 3}]", "cluster.placement=colocate", "faults=[{worker: 1, slow: {sleep: 2ms}}]"},
		{"sync=[{match: 'fc3.*', scheme: essp, staleness: 1}, {match: '*', scheme: ssp, staleness: 3, push: delta, " +
			"cache: true}]", "faults=[{worker: 1, slow: {sleep: 2ms}}]"},
		{"sync=[{match: '*.bias', scheme: ssp, staleness: 3, fold: rank}, {match: '*', scheme: asp}]", "evaluate.where=online"},
	}
	for k := range sets {
		sets[k] = append(sets[k], "train.stop={samples: 4000}")
	}
	for k, s := range eachOverMPI(t, mpitest.Built.Ranks(6), sets) {
		set := sets[k]
		var pushes int64
		for _, w := range s.PerWorker {
			pushes += w.Iterations
		}
		for _, sh := range s.PerShard {
			if sh.Pushes != pushes || sh.Dropped+sh.Duplicates+sh.Skipped != 0 {
				t.Errorf("%v: shard %+v, the workers pushed %d times", set, sh, pushes)
			}
		}
		if s.Finished != "ok" || s.Samples < 4000 || s.MaxLead > 3 && allShards(s, "ssp") {
			t.Errorf("%v: finished %q, %d samples, max_lead %d", set, s.Finished, s.Samples, s.MaxLead)
		}
	}
}

func allShards(s *metrics.Summary, name string) bool {
	for _, sh := range s.PerShard {
		if sh.Scheme != name {
			return false
		}
	}
	return true
}
