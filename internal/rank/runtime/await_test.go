package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/serve"
	"fluentps/internal/show/metrics"
)

// awaiting are the keys of a run whose schemes follow worker 3, which straggles in the iterations that until bounds. The sleeps of
// all other workers are long beside what a busy machine adds.
func awaiting(until, samples string) []string {
	return []string{
		`sync=[{match: "*.bias", schemes: [{scheme: bsp, until: {straggler: shows, factor: 3, rounds: 4}}, {scheme: asp, until: {straggler: gone, factor: 3, rounds: 4}}]},
			{match: "*", schemes: [{scheme: bsp, until: {straggler: shows, factor: 3, rounds: 4}}, {scheme: asp, until: {straggler: gone, factor: 3, rounds: 4}}]}]`,
		`faults=[{worker: "*", slow: {sleep: 3ms}}, {worker: 3, slow: {sleep: 30ms, from: 20` + until + `}}]`,
		"train.stop={samples: " + samples + "}", "evaluate.every_epochs=0",
	}
}

// staying is awaiting without the way back: a busy machine, which slows the other workers down, changes nothing more.
func staying(samples string) []string {
	set := awaiting("", samples)
	set[0] = strings.ReplaceAll(set[0], "scheme: asp, until: {straggler: gone, factor: 3, rounds: 4}", "scheme: asp")
	return set
}

// A run changes to asp when a worker is slow, and back to bsp when it is not. Rank 0 logs both, and they are in the summary. The slow
// worker skips what the others have computed meanwhile, at every shard.
func TestARunFollowsAStraggler(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	s := mustRunPart(t, load(t, awaiting(", until: 40", "9600")...), 6, dir, "").Summary
	// A busy machine may slow a worker down, too: then there are changes more, to asp and back in turn, and the first need not be at worker 3.
	if n := len(s.Changes); n < 4 || n%2 > 0 {
		t.Fatalf("changes %+v", s.Changes)
	}
	isAsAsked := len(s.Changes) == 4
	for i, c := range s.Changes {
		scheme, match := []string{"asp", "bsp"}[i/2%2], []string{"*.bias", "*"}[i%2]
		if c.Scheme != scheme || c.Match != match || c.Iteration != s.Changes[i/2*2].Iteration || c.Why == "" || i > 1 &&
			c.Iteration <= s.Changes[i/2*2-1].Iteration {
			t.Errorf("change %d is %+v", i, c)
		}
	}
	if shows, gone := s.Changes[0], s.Changes[2]; shows.Iteration > 40 || isAsAsked &&
		(shows.Iteration < 24 || !strings.HasPrefix(shows.Why, "worker 3 takes ")) {
		t.Errorf("shows %+v, gone %+v", shows, gone)
	}
	for _, sh := range s.PerShard {
		if sh.Skipped == 0 || sh.Skipped != s.PerShard[0].Skipped || sh.Dropped > 0 {
			t.Errorf("shard %d: %d iterations skipped and %d pushes dropped, at shard 0 %d skipped", sh.Shard, sh.Skipped,
				sh.Dropped, s.PerShard[0].Skipped)
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, metrics.LogName(0)))
	if err != nil || bytes.Count(log, []byte("scheme changes")) != len(s.Changes) {
		t.Errorf("%v, the log of rank 0:\n%s", err, log)
	}
}

// Where the ranks of a host are one worker, the worker straggles that has the slow rank.
func TestTeamsFollowAStraggler(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	set := append(awaiting(", until: 28", "14400"), "cluster={servers: 1, hierarchy: node}")
	set[1] = strings.Replace(set[1], "sleep: 30ms", "sleep: 150ms", 1) // seven ranks on a busy machine take tens of milliseconds
	res, errs := runOnHosts(t, "abbccdd", load(t, set...), func(o *Options) {
		if o.Transport.Rank() == 0 {
			o.Lead.Folder = &metrics.FolderSpec{Out: dir}
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if s := res[0].Summary; len(s.Changes) < 4 || len(s.Changes) == 4 &&
		!strings.HasPrefix(s.Changes[0].Why, "worker 1 takes ") || s.Changes[2].Scheme != "bsp" {
		t.Errorf("%d workers, changes %+v", s.Workers, s.Changes)
	}
}

func onlyCheckpoint(t *testing.T, dir string) string {
	t.Helper()
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("checkpoints %v, %v", dirs, err)
	}
	return dirs[0]
}

// A run that was stopped under asp resumes under asp at every shard, also with another number of servers. It looks for the straggler
// anew, but it has recorded the change.
func TestARunResumesUnderTheSchemeOfItsCheckpoint(t *testing.T) {
	for _, servers := range []int{2, 1} {
		dir := filepath.Join(t.TempDir(), "out")
		first := mustRunPart(t, load(t, staying("2000")...), 6, dir, "").Summary
		if len(first.Changes) != 2 || first.Changes[0].Scheme != "asp" {
			t.Fatalf("changes %+v", first.Changes)
		}
		at := onlyCheckpoint(t, dir)
		m, err := checkpoint.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Servers {
			e, err := m.File(checkpoint.ServerFile(i))
			var state serve.State
			if err == nil {
				_, err = checkpoint.ReadFile(at, e, &state)
			}
			for _, sh := range state.Shards {
				if err != nil || sh.Node.Changes != 1 || sh.Node.Began != first.Changes[0].Iteration {
					t.Errorf("%v, shard %s has %+v after the change at iteration %d", err, sh.Name, sh.Node, first.Changes[0].Iteration)
				}
			}
		}
		res, errs := runPart(t, load(t, append(staying("4000"), fmt.Sprintf("cluster.servers=%d", servers))...), 4+servers,
			dir, dir, func(o *Options) {
				o.AllowChanged = []string{"train.stop.samples", "cluster.servers"}
			})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		s := res[0].Summary
		if s.Finished != metrics.FinishedOK || len(s.Changes) != 2 || s.Changes[0] != first.Changes[0] || s.MaxLead < 3 {
			t.Errorf("%d servers: finished %q with a lead of %d and changes %+v", servers, s.Finished, s.MaxLead, s.Changes)
		}
	}
}

// Pauses for checkpoints during training keep the scheme, and fewer than 3 workers are refused.
func TestPausesKeepTheSchemeOfARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	s := mustRunPart(t, load(t, append(staying("3000"), "checkpoint={every_updates: 40, keep: 100}")...), 6, dir, "").Summary
	if dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder)); err != nil || len(dirs) < 3 || len(s.Changes) != 2 {
		t.Errorf("%v, %d checkpoints, changes %+v", err, len(dirs), s.Changes)
	}
	_, errs := world(t, load(t, awaiting("", "3000")[0]), 4, nil)
	if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "needs at least 3 of them, and the run has 2") {
		t.Errorf("2 workers: %v", err)
	}
}

// Where all schemes are bsp, an announced change changes nothing: the bits are those of bsp. Checkpoints are then written without a
// pause, and a run that was killed at any of them, also at the change, ends with the same bits.
func TestAnnouncedChangesBetweenSchemesThatAreBSPKeepTheBits(t *testing.T) {
	set := append(awaiting(", until: 30", "1600"), "checkpoint={every_updates: 1, keep: 1000}")
	want := mustTrain(t, load(t, append(set, `sync=[{match: "*", scheme: bsp}]`)...), 6).Summary.ParametersSHA256
	set[0] = `sync=[{match: "*", schemes: [{scheme: bsp, until: {straggler: shows, factor: 3, rounds: 4}}, {scheme: ssp, staleness: 0, fold: rank, until: {straggler: gone, factor: 3, rounds: 4}}]}]`
	dir := filepath.Join(t.TempDir(), "out")
	s := mustRunPart(t, load(t, set...), 6, dir, "").Summary
	if s.ParametersSHA256 != want || s.MaxLead != 0 || len(s.Changes) < 2 { // more on a busy machine
		t.Fatalf("sha256 %s, want %s; a lead of %d, changes %+v", s.ParametersSHA256, want, s.MaxLead, s.Changes)
	}
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil {
		t.Fatal(err)
	}
	resumed := 0
	for _, at := range dirs { // those around the change
		m, err := checkpoint.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		if d := m.Starts[0] - s.Changes[0].Iteration; d < -3 || d > 3 {
			continue
		}
		resumed++
		got := mustRunPart(t, load(t, set...), 6, dir, at).Summary
		if got.ParametersSHA256 != want {
			t.Errorf("resumed at %v: sha256 %s, want %s", m.Starts, got.ParametersSHA256, want)
		}
		if changed := m.Starts[0] >= s.Changes[0].Iteration; changed != (len(got.Changes) > 0 && got.Changes[0] == s.Changes[0]) {
			t.Errorf("resumed at %v, changes %+v, and before %+v", m.Starts, got.Changes, s.Changes)
		}
	}
	if resumed < 2 {
		t.Errorf("resumed from %d checkpoints around the change at iteration %d, of %d", resumed, s.Changes[0].Iteration, len(dirs))
	}
}
