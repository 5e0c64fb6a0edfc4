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

// A run whose time is so long that nothing is left out has the samples and the iterations of one without steps, and
// its parameters except for the order of additions.
func TestTimedRunsWithoutALimitEqualFixed(t *testing.T) {
	for _, scheme := range []string{"bsp", "ssp, staleness: 0"} {
		for _, placement := range []string{"spread", "colocate"} {
			ranks := map[string]int{"spread": 6, "colocate": 4}[placement]
			set := []string{"cluster={servers: 2, placement: " + placement + "}", "model={name: mlp, layers: [6]}",
				"sync=[{match: '*', scheme: " + scheme + "}]"}
			plain := mustTrain(t, load(t, set...), ranks)
			for _, policy := range []string{"{policy: anytime, time: 1h, micro: 3}",
				"{policy: dropcompute, time: 1h, micro: 3}", "{policy: dropcompute, profile: 100}"} {
				got := mustTrain(t, load(t, append(set, "work="+policy)...), ranks)
				if got.Summary.Samples != plain.Summary.Samples || got.Summary.Iterations != plain.Summary.Iterations {
					t.Errorf("%s, %s, %s: %d samples in %d iterations, want %d in %d", scheme, placement, policy,
						got.Summary.Samples, got.Summary.Iterations, plain.Summary.Samples, plain.Summary.Iterations)
				}
				if d := distance(plain.Parameters, got.Parameters); scheme == "bsp" && d > 1e-5 {
					t.Errorf("%s, %s, %s: a parameter is off by %g, want a little at most: sums are added up in another order",
						scheme, placement, policy, d)
				}
			}
		}
	}
}

// A time that is over after the first step leaves one step of each batch, under every scheme that is allowed: no push
// is empty, and nothing is divided by zero samples.
func TestTimedRunsHaveOneStepAtLeast(t *testing.T) {
	const updates = 12
	for _, scheme := range []string{"bsp", "asp", "ssp, staleness: 1", "dssp", "drop, required: 3", "quorum",
		"softsync, q: 2", "rennala", "ringmaster"} {
		for _, policy := range []string{"anytime", "dropcompute"} {
			set := []string{"cluster={servers: 1, placement: spread}", "sync=[{match: '*', scheme: " + scheme + "}]",
				"train.stop={updates: 12}", "evaluate.every_epochs=0", "work={policy: " + policy + ", time: 1ns, micro: 3}"}
			s := mustTrain(t, load(t, set...), 5).Summary
			if scheme == "bsp" && s.Samples != updates*4*3 {
				t.Errorf("%s under %s: %d samples, want 3 of each push", policy, scheme, s.Samples)
			}
			if s.Samples == 0 || s.Samples%3 != 0 || s.TestLoss == nil {
				t.Errorf("%s under %s: %d samples, test loss %v", policy, scheme, s.Samples, s.TestLoss)
			}
		}
	}
}

// halver computes whole batches of worker 0 and half of the others'.
type halver struct{ me int32 }

func (h halver) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	if ev.Kind != core.Starting || h.me == 0 {
		return out
	}
	own := ev.Task
	own.To = 4 // of 8
	return append(out, core.Order{Kind: core.Assign, Task: own})
}

// Where each push is a version, one with half of the samples moves the parameters half as far: the sum of the steps
// of all pushes on the same parameters is that of the samples.
func TestAPushWithHalfOfTheSamplesWeighsHalf(t *testing.T) {
	moved := func(work string, policy func(worker int) core.Work) float64 {
		set := []string{"cluster={servers: 1, placement: spread}", withoutMemory, "model={name: softmax}",
			"sync=[{match: '*', scheme: asp}]", "train.stop={updates: 1}", "evaluate.every_epochs=0", "train.optimizer={name: sgd, lr: 0.001}", work}
		cfg := load(t, set...)
		start := mustTrain(t, load(t, append(set, "train.optimizer={name: sgd, lr: 1e-30}")...), 2).Parameters
		res, errs := world(t, cfg, 2, func(o *Options) { o.axes = station.Axes{Work: policy} })
		for i, err := range errs {
			if err != nil {
				t.Fatalf("rank %d: %v", i, err)
			}
		}
		sum := 0.0
		for i, x := range res[0].Parameters {
			d := float64(x - start[i])
			sum += d * d
		}
		return sum
	}
	whole := moved("work={policy: anytime, time: 1h}", func(int) core.Work { return halver{0} })
	half := moved("work={policy: anytime, time: 1h}", func(int) core.Work { return halver{1} })
	unweighed := moved("work={policy: fixed}", func(int) core.Work { return halver{1} })
	// the gradient of four samples is not that of eight, so the lengths agree roughly
	if r := half / unweighed; r < 0.2499 || r > 0.2501 {
		t.Errorf("half of the samples move the parameters by %g of what they would with the weight of a whole push, in "+
			"squares; want a quarter (whole: %g)", r, whole)
	}
}

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
