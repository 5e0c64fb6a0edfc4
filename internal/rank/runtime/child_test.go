package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/ps/workload/external/externaltest"
)

// shapesFile writes the shapes of a child.
func shapesFile(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "child.shapes")
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(externaltest.Shapes().Write(f), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// withChild is a run of 2 workers whose model is a child of a mode.
func withChild(t *testing.T, shapes, mode string, set ...string) *configs.Config {
	t.Helper()
	command := strings.Join(externaltest.Command(mode), ", ")
	return load(t, append([]string{"data={set: external, rows: 480, test_rows: 200}", "cluster.servers=1",
		fmt.Sprintf("model={name: external, command: [%s], shapes: %s}", command, shapes)}, set...)...)
}

// A program trains, and evaluates, to the same bits on 1 and 2 servers, under other cuts of its tensors and on workers that serve.
func TestAProgramTrains(t *testing.T) {
	shapes := shapesFile(t)
	s := mustTrain(t, withChild(t, shapes, externaltest.Well, "train.stop={updates: 120}"), 3).Summary
	if s.TestAccuracy == nil || !(*s.TestAccuracy > 0.8) || len(s.Evaluations) < 4 ||
		!(*s.Evaluations[len(s.Evaluations)-1].TestLoss < 0.7**s.Evaluations[0].TestLoss) {
		t.Errorf("accuracy %v, evaluations %+v", s.TestAccuracy, s.Evaluations)
	}
	want := mustTrain(t, withChild(t, shapes, externaltest.Well), 3).Summary
	for name, c := range map[string]struct {
		ranks int
		set   []string
	}{
		"2 servers":        {4, []string{"cluster.servers=2"}},
		"2 servers, parts": {4, []string{"cluster.servers=2", "shards={slice: layer, max_bytes: 16B}"}},
		"colocate":         {2, []string{"cluster={servers: 2, placement: colocate}"}},
		"no shared memory": {3, []string{"cluster.shared_memory=off"}},
	} {
		got := mustTrain(t, withChild(t, shapes, externaltest.Well, c.set...), c.ranks).Summary
		if got.ParametersSHA256 != want.ParametersSHA256 || *got.TestLoss != *want.TestLoss || *got.TestAccuracy != *want.TestAccuracy {
			t.Errorf("%s: sha256 %.12s, loss %v, accuracy %v; want %.12s, %v, %v", name, got.ParametersSHA256, *got.TestLoss, *got.TestAccuracy,
				want.ParametersSHA256, *want.TestLoss, *want.TestAccuracy)
		}
	}
}

// A program trains under whatever decides what workers do.
func TestAProgramGoesWithPolicies(t *testing.T) {
	shapes := shapesFile(t)
	for name, set := range map[string][]string{
		"all-reduce":  {"baseline=allreduce", "cluster.servers=null"},
		"own steps":   {"local={policy: averaging, steps: 3}", "train.optimizer={name: adam, lr: 0.01}"},
		"moving work": {"work={policy: flexrr}", "sync=[{match: '*', scheme: ssp, staleness: 1}]"},
		"mixed":       {"cluster.placement=mixed"},
		"no accuracy": {"data.accuracy=false"},
	} {
		ranks := 3
		if name == "all-reduce" {
			ranks = 2
		}
		s := mustTrain(t, withChild(t, shapes, externaltest.Well, set...), ranks).Summary
		if last := s.Evaluations[len(s.Evaluations)-1]; !(*last.TestLoss < 1.05) || (last.TestAccuracy == nil) != (name == "no accuracy") {
			t.Errorf("%s: the last evaluation is %+v", name, last)
		}
	}
}

// A run of a program that was stopped resumes to the bits of one that was not, on another number of servers, too.
func TestAProgramResumes(t *testing.T) {
	shapes := shapesFile(t)
	want := mustTrain(t, withChild(t, shapes, externaltest.Well, updates(30)), 3).Summary.ParametersSHA256
	for _, servers := range []int{1, 2} {
		dir := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, withChild(t, shapes, externaltest.Well, updates(11)), 3, dir, "")
		c := withChild(t, shapes, externaltest.Well, updates(30), fmt.Sprintf("cluster.servers=%d", servers))
		res, errs := runPart(t, c, 2+servers, dir, dir, func(o *Options) { o.AllowChanged = []string{"cluster.servers"} })
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if s := res[0].Summary; s.ParametersSHA256 != want || s.Resumed == nil {
			t.Errorf("%d servers: sha256 %.12s, resumed %v; want %.12s", servers, s.ParametersSHA256, s.Resumed, want)
		}
	}
}

// A program whose gradients depend on random numbers goes on with those that would have been next, from each checkpoint of a run, and under
// whatever decides what workers do. One that keeps nothing does not.
func TestAProgramKeepsItsState(t *testing.T) {
	shapes := shapesFile(t)
	for name, c := range map[string]struct {
		ranks int
		set   []string
	}{
		"in step":     {3, nil},
		"two servers": {4, []string{"cluster.servers=2"}},
		"colocate":    {2, []string{"cluster={servers: 2, placement: colocate}"}},
		"pauses":      {2, []string{"sync=[{match: '*', scheme: asp}]"}},
		"own steps":   {3, []string{"local={policy: averaging, steps: 3}"}},
		"delayed":     {3, []string{"local={policy: streaming_diloco, steps: 4, fragments: 2, delay: 2}"}},
		"parts":       {2, []string{"work={policy: flexrr, micro: 4}", "sync=[{match: '*', scheme: ssp, staleness: 1}]"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			set := append(c.set, "checkpoint={every_updates: 2, keep: 50}", "faults=[{worker: '*', slow: {sleep: 5ms}}]")
			want := mustRunPart(t, withChild(t, shapes, externaltest.Draws, append(set, updates(24))...), c.ranks, dir, "").Summary.ParametersSHA256
			for _, number := range checkpointsOf(t, dir)[:2] {
				again := filepath.Join(t.TempDir(), "again")
				if err := os.CopyFS(again, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				run := withChild(t, shapes, externaltest.Draws, append(set, updates(24))...)
				got := mustRunPart(t, run, c.ranks, again, filepath.Join(again, "checkpoints", number)).Summary.ParametersSHA256
				if got != want {
					t.Errorf("from checkpoint %s: sha256 %.12s, want %.12s", number, got, want)
				}
			}
		})
	}
}

// A checkpoint with state of its program is refused by one that keeps none.
func TestAProgramThatForgetsDoesNotResume(t *testing.T) {
	shapes, dir := shapesFile(t), filepath.Join(t.TempDir(), "out")
	mustRunPart(t, withChild(t, shapes, externaltest.Draws, updates(5)), 3, dir, "")
	_, errs := runPart(t, withChild(t, shapes, externaltest.Forgets, updates(9)), 3, dir, dir, func(o *Options) {
		o.AllowChanged = []string{"model.command"}
	})
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "keeps no state, but the checkpoint has 11 bytes of it") {
		t.Errorf("the error is %v", err)
	}
}

// checkpointsOf are the numbers of the checkpoints of a run: several.
func checkpointsOf(t *testing.T, dir string) (numbers []string) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(dir, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if e.IsDir() {
			numbers = append(numbers, e.Name())
		}
	}
	if len(numbers) < 2 {
		t.Fatalf("the run has made the checkpoints %q", numbers)
	}
	return numbers
}

// A program that fails on one worker ends the run on all ranks, with code 1. The error names the worker's child. Before training all ranks
// have it; later the rank of the worker alone, and the others hear that it has ended the run.
func TestAProgramThatFailsEndsTheRun(t *testing.T) {
	shapes := shapesFile(t)
	for mode, c := range map[string]struct {
		agreed bool
		want   []string
	}{
		"exits":    {true, []string{"has ended with exit code 3"}},
		"shape@1":  {true, []string{"has bound tensor hidden.weight with the shape [3 4], model.shapes has [4 3]"}},
		"raises@1": {false, []string{"rank 2, worker 1: iteration 0: forward: ", "has failed: ValueError: the batch is too odd", "line 7"}},
		"killed@1": {false, []string{"rank 2, worker 1: iteration 0: forward: ", "was killed by SIGKILL", "gets a signal"}},
		"nohits@1": {false, []string{"rank 2: evaluation of test rows 0 to 199: ", "has sent RESULT without the number of samples"}},
	} {
		t.Run(mode, func(t *testing.T) {
			_, errs := world(t, withChild(t, shapes, mode), 3, nil)
			for rank, err := range errs {
				var agreed *ExitError
				switch {
				case err == nil:
					t.Fatalf("rank %d ended well", rank)
				case c.agreed && (!errors.As(err, &agreed) || agreed.Code != CodeFailed || agreed.Text != errs[2].Error()):
					t.Errorf("rank %d: %v; rank 2: %v", rank, err, errs[2])
				case !c.agreed && rank != 2 && !strings.Contains(err.Error(), "rank 2 aborted the world with code 1"):
					t.Errorf("rank %d: %v", rank, err)
				}
			}
			for _, want := range append(c.want, "the child ", " "+mode) {
				if !strings.Contains(errs[2].Error(), want) {
					t.Errorf("the error is %q, want it to say %q", errs[2], want)
				}
			}
			if n := strings.Count(errs[2].Error(), "the child "); n != 1 && !c.agreed {
				t.Errorf("%d errors of children in %v", n, errs[2])
			}
		})
	}
}

// Programs that begin with other values are warned of once, and the values of worker 0 count.
func TestProgramsThatBeginUnlike(t *testing.T) {
	shapes := shapesFile(t)
	want := mustTrain(t, withChild(t, shapes, externaltest.Well), 3).Summary.ParametersSHA256
	var said lines
	res, errs := world(t, withChild(t, shapes, "unlike"), 3, func(o *Options) { o.Warn = &said })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if got := res[0].Summary.ParametersSHA256; got != want {
		t.Errorf("sha256 %.12s, want %.12s, which begins with the values of worker 0", got, want)
	}
	if n := strings.Count(said.String(), "begin with other parameters"); n != 1 || !strings.Contains(said.String(), "1 worker (1)") {
		t.Errorf("the warning came %d times:\n%s", n, said.String())
	}
}
