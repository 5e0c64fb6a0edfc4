package runtime

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/resume"
	"fluentps/internal/show/metrics"
)

// The ranks of a host that compute as one worker resume together, with the residual and the optimizer of their worker.
func TestTeamsGoOn(t *testing.T) {
	part := func(dir, resume, stop string) *metrics.Summary {
		t.Helper()
		c := load(t, "cluster={servers: 2, hierarchy: node}", "train.optimizer={name: adam, lr: 0.01}",
			`sync=[{match: "*.bias", scheme: bsp, push: delta}, {match: "*", scheme: bsp}]`,
			"payload={push: topk, ratio: 0.2}", "model={name: mlp, layers: [16]}", stop,
			"checkpoint={every_updates: 20, keep: 1000}", "evaluate.every_epochs=0")
		hosts := "aaaabbbb"
		signals, ended := make(chan string, 1), make(chan struct{})
		if resume == "" {
			go interruptAt(dir, 2, signals, ended)
		}
		res, errs := runOver(t, hosted(hosts), c, func(o *Options) {
			o.Resume, o.Host = resume, hosts[o.Transport.Rank():][:1]
			if o.Transport.Rank() == 0 && dir != "" {
				o.Lead.Folder, o.Interrupt = &metrics.FolderSpec{Out: dir}, signals
			}
		})
		close(ended)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return res[0].Summary
	}
	dir := filepath.Join(t.TempDir(), "out")
	if s := part(dir, "", "train.stop={time: 1h}"); s.Workers != 2 || s.Computing != 6 {
		t.Fatalf("%d workers, %d compute", s.Workers, s.Computing)
	}
	killedAfter(t, dir, 2)
	m, err := checkpoint.Open(filepath.Join(dir, checkpoint.Folder, "000000000002"))
	if err != nil || m.Computing != 6 {
		t.Fatalf("%+v, %v", m, err)
	}
	stop := updates(m.Iteration + 15)
	got := part(dir, dir, stop)
	if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) != 3 {
		t.Errorf("after 15 iterations, with checkpoints every 20 and one at the end: %v, %v", dirs, err)
	}
	whole := filepath.Join(t.TempDir(), "whole")
	want := part(whole, resume.Auto, stop)
	if got.ParametersSHA256 != want.ParametersSHA256 || got.Resumed == nil || want.Resumed != nil {
		t.Errorf("sha256 %s, want %s; resumed %+v and %+v", got.ParametersSHA256, want.ParametersSHA256, got.Resumed, want.Resumed)
	}
}

// A run that has diverged leaves no checkpoint to resume from.
func TestARunThatDivergesLeavesNoCheckpoint(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	res, errs := runPart(t,
		load(t, "train.optimizer={name: sgd, lr: 1e38}", "model={name: mlp, layers: [8]}", updates(10000)), 6, dir, "", nil)
	if err := errors.Join(errs...); err != nil || res[0].Code != CodeFailed || !strings.HasPrefix(res[0].Summary.Finished, "diverged") {
		t.Fatalf("code %d, finished %q: %v", res[0].Code, res[0].Summary.Finished, err)
	}
	if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) != 0 {
		t.Errorf("checkpoints %v, %v", dirs, err)
	}
}

// A resumed run continues its evaluations beside training: earlier ones are kept, and each epoch is evaluated once.
func TestEvaluationsGoOn(t *testing.T) {
	for _, where := range []string{"online", "after"} {
		set := []string{"evaluate={every_epochs: 1, where: " + where + "}", "data.partition=overlap_reshuffle"}
		dir := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, load(t, append(set, updates(30))...), 6, dir, "")
		got := mustRunPart(t, load(t, append(set, updates(75))...), 6, dir, dir).Summary.Evaluations
		want := mustTrain(t, load(t, append(set, updates(75))...), 6).Summary.Evaluations
		if len(got) != len(want) || len(got) != 5 {
			t.Fatalf("%s: %d evaluations, and %d without interruption", where, len(got), len(want))
		}
		for i := range got {
			if a, b := evaluationText(got[i]), evaluationText(want[i]); a != b {
				t.Errorf("%s: evaluation %d of %d is %s, want %s", where, i, len(got), a, b)
			}
		}
	}
}
