package coordinate_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
)

// holdsEachPushOnce fails unless every shard of a checkpoint has exactly the pushes of the iterations before its workers'
// next ones; at most these, if the scheme drops some.
func holdsEachPushOnce(t *testing.T, dir string, drops bool) *checkpoint.Manifest {
	t.Helper()
	m, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all int64
	for _, next := range m.Starts {
		all += next
	}
	shards, batch := 0, 8*int64(m.Computing/m.Workers)
	for i := range m.Servers {
		e, err := m.File(checkpoint.ServerFile(i))
		if err != nil {
			continue // a server without shards
		}
		var state serve.State
		if _, err := checkpoint.ReadFile(dir, e, &state); err != nil {
			t.Fatal(err)
		}
		for _, sh := range state.Shards {
			shards++
			if n := sh.Node; n.Samples != batch*n.Accepted || n.Accepted > all || !drops && n.Accepted != all {
				t.Errorf("%s: shard %s has %d pushes with %d samples, and its workers resume at %v", filepath.Base(dir), sh.Name,
					n.Accepted, n.Samples, m.Starts)
			}
		}
	}
	if shards == 0 {
		t.Errorf("%s: no shards", dir)
	}
	return m
}

// Where a scheme makes the sides do something of their own, checkpoints are written during training, and all shards of each have every push
// of the earlier iterations once. The same holds for a run that was killed and resumes from one. internal/core/servernode draws all schemes
// (TestPausesAndKillsKeepEachPushOnce).
func TestCheckpointsOfEverySchemeHaveEachPushOnce(t *testing.T) {
	for sync, drops := range map[string]bool{
		"{match: '*', scheme: asp}": false, "{match: '*', scheme: drop, required: 3}": true,
		"{match: '*', scheme: drop, required: 3, contributors: step}": true, "{match: '*', scheme: r2sp}": false,
		"{match: '*', scheme: essp}": false, "{match: '*', scheme: ssp, push: delta, cache: true}": false,
		"{match: '*', scheme: vap, push: delta, v0: 0.01}":                                                      false,
		"{match: '*.bias', scheme: quorum}, {match: '*', schemes: [{scheme: quorum, until: 9}, {scheme: bsp}]}": false,
		"{match: '*.bias', scheme: essp}, {match: '*', schemes: [{scheme: bsp, until: 9}, {scheme: asp}]}":      false,
	} {
		if !runsUnderRace(sync, "{match: '*', scheme: drop, required: 3}", "{match: '*', scheme: ssp, push: delta, cache: true}",
			"{match: '*.bias', scheme: essp}, {match: '*', schemes: [{scheme: bsp, until: 9}, {scheme: asp}]}") {
			continue
		}
		t.Run(sync, func(t *testing.T) { pausesKeepEachPush(t, sync, drops) })
	}
}

func pausesKeepEachPush(t *testing.T, sync string, drops bool) {
	to := func(stop string) *configs.Config {
		return load(t, "sync=["+sync+"]", "train.stop="+stop, "checkpoint={every_updates: 25, keep: 1000}",
			"data.partition=overlap_reshuffle", "evaluate.every_epochs=0")
	}
	dir := filepath.Join(t.TempDir(), "out")
	interrupted(t, &part{config: to("{time: 1h}"), ranks: 6, dir: dir}, 3)
	looked := func(least int) (newest *checkpoint.Manifest) {
		t.Helper()
		var later *checkpoint.Manifest
		for _, d := range checkpointsOf(t, dir, least) {
			m := holdsEachPushOnce(t, d, drops)
			if newest == nil {
				newest = m
			} else if m.Samples > later.Samples {
				t.Errorf("%s has %d samples, the one after it %d", d, m.Samples, later.Samples)
			}
			later = m
		}
		return newest
	}
	looked(3)
	killedAfter(t, dir, 2)
	from := looked(2)
	s := mustRunPart(t, to(fmt.Sprintf("{samples: %d}", from.Samples+4000)), 6, dir, dir).Summary
	if end := looked(3); s.Resumed == nil || s.Resumed.Samples != from.Samples || end.Samples != s.Samples {
		t.Errorf("resumed at %+v, of %d samples; %d at the end, %d in its checkpoint", s.Resumed, from.Samples, s.Samples, end.Samples)
	}
	var pushed int64
	for _, w := range s.PerWorker {
		pushed += w.Samples
	}
	if got := s.Samples - from.Samples + 8*s.PerShard[0].Dropped; got != pushed {
		t.Errorf("the workers computed %d samples since, and %d were folded or dropped", pushed, got)
	}
}

// The same holds for other placements, payloads with residuals, optimizers at servers and workers, teams, phases, and
// evaluations beside training. No residual and no iteration is lost, and every rank that has a part of the run resumes with
// it.
func TestPausesOfOtherRuns(t *testing.T) {
	for name, set := range map[string][]string{
		"colocate": {"cluster.placement=colocate", "payload={push: topk, ratio: 0.1}", "model={name: mlp, layers: [16]}"},
		"mixed":    {"cluster.placement=mixed", "train.optimizer={name: adam, lr: 0.01}", "shards.max_bytes=64B", "send={order: priority}"},
		"messages": {"cluster.shared_memory=off", `sync=[{match: "*", scheme: ssp, staleness: 3, push: delta}]`,
			"train.optimizer={name: adam, lr: 0.01}"},
		"teams":  {"cluster={servers: 2, hierarchy: node}", "payload={push: topk, ratio: 0.2}", "model={name: mlp, layers: [16]}"},
		"online": {"evaluate={every_epochs: 1, where: online}"},
		"idle":   {"cluster.servers=3", "shards.slice=layer", "send={overlap: false}"},
	} {
		if !runsUnderRace(name, "mixed", "teams", "online") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			hosts := map[string]string{"colocate": "aaaa", "mixed": "aaaaaa", "teams": "aaaabbbb", "idle": "aaaaaaa"}[name]
			if hosts == "" {
				hosts = "aabbbb"
			}
			part := func(dir, resume, stop string) *part {
				return &part{config: load(t, append([]string{`sync=[{match: "*.bias", scheme: ssp, staleness: 2}, {match: "*", scheme: asp}]`,
					"train.stop=" + stop, "checkpoint={every_updates: 25, keep: 1000}", "evaluate.every_epochs=0"}, set...)...),
					hosts: hosts, dir: dir, resume: resume}
			}
			dir := filepath.Join(t.TempDir(), "out")
			interrupted(t, part(dir, "", "{time: 1h}"), 3)
			killedAfter(t, dir, 2)
			m := holdsEachPushOnce(t, filepath.Join(dir, checkpoint.Folder, "000000000002"), false)
			s := part(dir, dir, fmt.Sprintf("{samples: %d}", m.Samples+4000)).must(t).Summary
			if s.Resumed == nil || s.Resumed.Samples != m.Samples {
				t.Errorf("resumed at %+v", s.Resumed)
			}
			for i := 1; i < len(s.Evaluations); i++ {
				if a, b := s.Evaluations[i-1], s.Evaluations[i]; a.Samples >= b.Samples {
					t.Errorf("evaluations at %d and %d samples", a.Samples, b.Samples)
				}
			}
		})
	}
}

// A pause changes no bit. Drop with the pushes of all workers equals bsp, but its workers might be behind, so its
// checkpoints need pauses. It ends with the bits of a bsp run without pauses, and so does a run that resumes from such a
// checkpoint.
func TestAPauseChangesNoBit(t *testing.T) {
	for name, set := range map[string][]string{
		"momentum": nil,
		"adam":     {"train.optimizer={name: adam, lr: 0.01}", "shards.max_bytes=64B", "send={order: priority}"},
		"messages": {"cluster.shared_memory=off", "model={name: mlp, layers: [64]}", "send={overlap: false}"},
	} {
		if !runsUnderRace(name, "messages") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			to := func(scheme, stop string) *configs.Config {
				return load(t, append([]string{"sync=[{match: '*', scheme: " + scheme + "}]", "train.stop=" + stop,
					"evaluate.every_epochs=0", "checkpoint={every_updates: 20, keep: 1000}"}, set...)...)
			}
			dir := filepath.Join(t.TempDir(), "out")
			interrupted(t, &part{config: to("drop", "{time: 1h}"), ranks: 6, dir: dir}, 3)
			dirs := checkpointsOf(t, dir, 4)
			end := holdsEachPushOnce(t, dirs[0], false)
			stop := fmt.Sprintf("{updates: %d}", end.Iteration+30)
			want := mustTrain(t, to("bsp", stop), 6).Summary
			if got := mustRunPart(t, to("drop", stop), 6, dir, dir).Summary; got.ParametersSHA256 != want.ParametersSHA256 ||
				got.Samples != want.Samples {
				t.Errorf("after %d pauses: sha256 %s of %d samples, want %s of %d", len(dirs)-1, got.ParametersSHA256,
					got.Samples, want.ParametersSHA256, want.Samples)
			}
			killedAfter(t, dir, 2)
			if got := mustRunPart(t, to("drop", stop), 6, dir, dir).Summary; got.ParametersSHA256 != want.ParametersSHA256 ||
				got.Samples != want.Samples {
				t.Errorf("from the second checkpoint: sha256 %s of %d samples, want %s of %d", got.ParametersSHA256, got.Samples,
					want.ParametersSHA256, want.Samples)
			}
		})
	}
}

// A run that is stopped, by a signal to any rank or by its time limit, at any moment of a pause, ends with a checkpoint
// that has every push once.
func TestARunIsStoppedInAPause(t *testing.T) {
	set := []string{"sync=[{match: '*.bias', scheme: ssp, staleness: 1}, {match: '*', scheme: asp}]",
		"checkpoint={every_updates: 1, keep: 2}", "evaluate.every_epochs=0", endless}
	for nth := range int32(12) {
		dir := filepath.Join(t.TempDir(), "out")
		s := signalled(t, dir, "SIGUSR1", false, int(nth%6), 1+7*nth, set...).mustEnd(t, station.CodeAgain).Summary
		if !strings.HasPrefix(s.Finished, "stopped by ") {
			t.Errorf("finished %q", s.Finished)
		}
		holdsEachPushOnce(t, checkpointsOf(t, dir, 1)[0], false)
	}
	p := &part{config: load(t, set...), ranks: 6, dir: filepath.Join(t.TempDir(), "out")}
	p.load = at(60, func() { p.ring(0, func(r ranked) { r.Lead.Stop() }) })
	p.must(t)
	holdsEachPushOnce(t, checkpointsOf(t, p.dir, 1)[0], false)
}
