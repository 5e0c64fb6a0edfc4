package runtime

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"fluentps/internal/core"
	"fluentps/internal/core/tasks"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/train"
)

// watchedTau is a policy of dropcompute that says whether the run has used it.
type watchedTau struct {
	core.Learner
	used *bool
}

func (p watchedTau) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	*p.used = true
	return p.Learner.Step(ev, out)
}

// taus are what the workers know at the end: who has chosen tau (-1: nobody), tau, and its first iteration.
func taus(t *testing.T, dir, resume string, workers int, set ...string) (all [][]float64) {
	t.Helper()
	c := load(t, append([]string{"cluster={servers: 1, placement: spread}", "evaluate.every_epochs=0",
		"work={policy: dropcompute, profile: 4, micro: 1}"}, set...)...)
	var mu sync.Mutex
	last := make([]watchedTau, workers)
	res, errs := runPart(t, c, workers+1, dir, resume, func(o *Options) {
		o.AllowChanged = []string{"work.micro"}
		o.axes = station.Axes{Work: func(worker int) core.Work {
			p := watchedTau{tasks.New(c.Work, tasks.Env{Me: int32(worker), Batches: c.Batches(workers)}).(core.Learner), new(bool)}
			mu.Lock()
			defer mu.Unlock()
			if last[worker].used == nil || !*last[worker].used || resume == "" { // of those that are made before the run begins, one is used
				last[worker] = p
			}
			return p
		}}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	mustAgree(t, CodeOK, res, errs)
	for _, p := range last {
		all = append(all, p.Memory()[2:5])
	}
	return all
}

// Workers choose tau in a real run, all the same, and begin with it at the same iteration, also if checkpoints pause
// the run all the time. A run that resumes goes on with tau; one with another number of workers, or other steps,
// chooses anew.
func TestDropComputeChoosesTauAndResumes(t *testing.T) {
	agreed := func(what string, all [][]float64) []float64 {
		t.Helper()
		for w, x := range all {
			if x[0] < 0 || !slices.Equal(x, all[0]) {
				t.Errorf("%s: worker %d knows %v, worker 0 %v", what, w, x, all[0])
			}
		}
		return all[0]
	}
	dir := filepath.Join(t.TempDir(), "out")
	first := agreed("first", taus(t, dir, "", 4, "train.stop={updates: 20}"))
	if first[2] < 4 {
		t.Errorf("tau begins at iteration %v, within the profile", first[2])
	}
	if again := agreed("resumed", taus(t, dir, dir, 4, "train.stop={updates: 30}")); !slices.Equal(again, first) {
		t.Errorf("a run that resumes knows %v, want %v", again, first)
	}
	if other := agreed("other steps", taus(t, dir, dir, 4, "train.stop={updates: 60}", "work.micro=2")); other[2] < 34 {
		t.Errorf("with other steps tau begins at iteration %v, want a new profile", other[2])
	}
	paused := filepath.Join(t.TempDir(), "out")
	agreed("paused", taus(t, paused, "", 3, "train.stop={updates: 1500}", "work.profile=300",
		"faults=[{worker: 1, slow: {sleep: 1ms}}]", "sync=[{match: '*', scheme: ssp, staleness: 1}]",
		"checkpoint={every_updates: 9, keep: 1000}"))
	if made, err := checkpoint.List(filepath.Join(paused, checkpoint.Folder)); err != nil || len(made) < 2 {
		t.Errorf("%d checkpoints, %v", len(made), err)
	}
}

// A checkpoint in which a worker has learned what no policy learns is not resumed from.
func TestLearnedNumbersAreChecked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	set := []string{"cluster={servers: 1, placement: spread}", "work={policy: dropcompute, profile: 2, micro: 1}", "train.stop={updates: 10}"}
	mustRunPart(t, load(t, set...), 3, dir, "")
	at := onlyCheckpoint(t, dir)
	file := filepath.Join(at, checkpoint.WorkerFile(1))
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(`"learned":{"policy":"dropcompute","workers":2,"numbers":[8,1,`)) {
		t.Fatalf("the state is %.300q", data)
	}
	var s train.State
	m, err := checkpoint.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.File(checkpoint.WorkerFile(1))
	if err == nil {
		_, err = checkpoint.ReadFile(at, e, &s)
	}
	if err != nil || len(s.Learned.Numbers) != 6 {
		t.Fatalf("%v, %+v", err, s.Learned)
	}
}
