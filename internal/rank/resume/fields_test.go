package resume

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/policy/local"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
)

// What a worker saved of its own steps may have values that no run wrote. The error names the field, and the run resumes from the
// checkpoint before.
func TestInvalidOwnStepsAreNamed(t *testing.T) {
	hpsgd := []string{"local={policy: hpsgd, steps: 3}"}
	adacomm := []string{"local={policy: averaging, steps: 8, period: {name: adacomm, interval: 2}}"}
	streaming := []string{"local={policy: streaming_diloco, steps: 6, fragments: 3, delay: 1}"}
	origins := map[string]string{}
	for _, set := range [][]string{hpsgd, adacomm, streaming} {
		dir := filepath.Join(t.TempDir(), "out")
		leave(t, dir, load(t, stepping(set...)...), 6, 5)
		leave(t, dir, load(t, stepping(set...)...), 6, 9)
		origins[set[0]] = dir
	}
	for _, c := range []struct {
		set              []string
		pattern, by, say string
	}{
		{hpsgd, `"own":{"step":(\d+)`, "-1", "own.step is -1"},
		{hpsgd, `"own":{"step":(\d+)`, "9223372036854775807", "own.step is 9223372036854775807"},
		{hpsgd, `"own":{"step":(\d+)`, "2", "own.pushed is"},
		{hpsgd, `"own":({.*?\]),"samples":\d+}`, "null,\"was\":{\"since\":[", "worker-0001.bin"},
		{hpsgd, `"done":(\d+)`, "-3", "own.done is -3"},
		{hpsgd, `"done":(\d+)`, "7000", "own.done is 7000"},
		{hpsgd, `"pushed":(\d+)`, "100000", "own.pushed is 100000"},
		{hpsgd, `"last":(-?\d+)`, "5000", "own.last is 5000"},
		{hpsgd, `"last":(-?\d+)`, "-2", "own.last is -2"},
		{hpsgd, `"since":\[{"samples":(\d+)`, "-8", "own.since[0].samples is -8"},
		{hpsgd, `"since":\[{"samples":\d+,"correct":(\d+)`, "999", "own.since[0].correct is 999"},
		{hpsgd, `"since":\[{"samples":\d+,"correct":\d+,"loss":([^}]+)`, "-1", "own.since[0].loss is -1"},
		{hpsgd, `"since":(\[[^\]]*\])`, "[]", "own.since has 0 entries, but the parameters are exchanged in 1 fragments"},
		{hpsgd, `"samples":(\d+)}[,}]`, "4000", "own.samples is 4000"},
		{hpsgd, `"steps":(\d+)`, "100000", "steps is 100000"},
		{adacomm, `"policy":(\[[^\]]*\])`, "[0,1,1]", "own.policy: local: adacomm cannot continue from [0 1 1]"},
		{adacomm, `"policy":(\[[^\]]*\])`, "[4,1e300,1]", "own.policy: local: adacomm cannot continue from [4 1e+300 1]"},
		{adacomm, `"policy":(\[[^\]]*\])`, "[4,1]", "own.policy: local: adacomm cannot continue from [4 1]"},
		{streaming, `"since":(\[[^\]]*\])`, `[{"samples":900,"correct":0,"loss":1}]`,
			"own.since has 1 entries, but the parameters are exchanged in 3 fragments"},
	} {
		if stationtest.UnderRace && c.pattern != `"last":(-?\d+)` { // as in TestInvalidFieldsAreNamed
			continue
		}
		t.Run(c.say, func(t *testing.T) {
			dir := copied(t, origins[c.set[0]])
			rewriteFile(t, at(dir, 2), "worker-0001.bin", replaceField(t, c.pattern, c.by))
			f := search{resume: dir}.restore(t, load(t, stepping(c.set...)...), 6)
			f.mustTake(t, "000000000001")
			if !strings.Contains(f.said, c.say) || !strings.Contains(f.said, "worker-0001.bin") {
				t.Errorf("no word of %q in %s", c.say, f.said)
			}
		})
	}
	for element, say := range map[int]string{0: "of vector 1 of its own parameters is NaN", -1: "of vector 2 of its own parameters is NaN"} {
		set := stepping(append([]string{"train.optimizer={name: sgd, lr: 0.05}"}, hpsgd...)...)
		dir := filepath.Join(t.TempDir(), "out")
		leave(t, dir, load(t, set...), 6, 5)
		rewriteFile(t, at(dir, 1), "worker-0001.bin", replaceElement(element, math.NaN()))
		search{resume: dir}.restore(t, load(t, set...), 6).mustRefuse(t, say)
	}
}

// stepping are the settings of a run whose workers take steps of their own.
func stepping(set ...string) []string {
	return append([]string{"model={name: mlp, layers: [16, 8, 8]}", "shards.slice=layer",
		"train.optimizer={name: momentum, lr: 0.05}"}, set...)
}

// Fields about batches that no run wrote are named.
func TestInvalidFieldsOfBatchesAreNamed(t *testing.T) {
	dealt := []string{"cluster.servers=1", "data={set: generated, rows: 207, features: 8, classes: 4}",
		"train={batch_global: 40, optimizer: {name: sgd, lr: 0.1}, stop: {epochs: 4}}", "work={policy: r2sp_batch, profile: 4}"}
	origin := filepath.Join(t.TempDir(), "out")
	leave(t, origin, load(t, dealt...), 5, 6)
	const manifest, worker = "manifest.json", "worker-0001.bin"
	for _, c := range []struct{ file, pattern, by, says string }{
		{manifest, `"number": ?(\d+),\s*"from"`, "-7", "state.work.assignment.number is -7"},
		{manifest, `"number": ?(\d+),\s*"from"`, "9223372036854775807", "state.work.assignment.number is 9223372036854775807"},
		{manifest, `"until": ?(\d+)`, "3", "state.work.assignment.until is 3"},
		{manifest, `"until": ?(\d+)`, "1000000000000", "state.work.assignment.until is 1000000000000"},
		{manifest, `"batches": ?\[\s*(\d+)`, "0", "does not belong to a run of 4 workers and 40 samples"},
		{manifest, `"batches": ?\[\s*(\d+)`, "400", "does not belong to a run of 4 workers and 40 samples"},
		{manifest, `"batches": ?(\[[^]]*\])`, "[20, 20]", "does not belong to a run of 4 workers and 40 samples"},
		{manifest, `"memory": ?\[\s*(\d+)`, "0.5, 7, 7, 7", "that r2sp_batch remembers cannot be one of a run of 4 workers"},
		{manifest, `"memory": ?(\[[^]]*\])`, "[1e300]", "that r2sp_batch remembers cannot be one of a run of 4 workers"},
		{worker, `"took_ns":(\d+)`, "9223372036854775807", "tallies[0].took_ns is 9223372036854775807"},
		{worker, `"samples":(\d+)`, "-5", "tallies[0].samples is -5"},
		{worker, `"times_ns":\[(\d+)`, "-9223372036854775808", "tallies[0].times_ns[0] is -9223372036854775808"},
	} {
		t.Run(c.file+" "+c.by, func(t *testing.T) {
			dir := copied(t, origin)
			rewriteFile(t, at(dir, 1), c.file, replaceField(t, c.pattern, c.by))
			search{resume: dir}.restore(t, load(t, dealt...), 5).mustRefuse(t, c.says)
		})
	}
}

// A checkpoint whose shards have changed differently was written by no run.
func TestChangesThatDifferAreNamed(t *testing.T) {
	const rule = "schemes: [{scheme: bsp, until: {straggler: shows, factor: 3, rounds: 4}}, {scheme: asp}]}"
	set := `sync=[{match: "*.bias", ` + rule + `, {match: "*", ` + rule + `]`
	dir := filepath.Join(t.TempDir(), "out")
	leave(t, dir, load(t, set), 6, 40)
	search{resume: dir}.restore(t, load(t, set), 6).mustTake(t, "000000000001")
	for by, says := range map[string]string{"2": "node.changes", "-1": "node.changes is -1"} {
		rewriteFile(t, at(dir, 1), "server-0000.bin", replaceField(t, `"changes":(-?\d+)`, by))
		search{resume: dir}.restore(t, load(t, set), 6).mustRefuse(t, says)
	}
}

// The error names counts that other workers cannot have, because they would mean too many pushes.
func TestCountsThatOtherWorkersCannotHave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	leave(t, dir, load(t, "cluster.servers=1"), 2, 5)
	most := fmt.Sprint(int64(checkpoint.CountMax))
	again := func() found {
		return search{resume: dir, allow: []string{"workers"}}.restore(t, load(t, "cluster.servers=1"), 10)
	}
	rewriteFile(t, at(dir, 1), "server-0000.bin", replaceField(t, `"rated":(\d+)`, most))
	again().mustRefuse(t, `node.rated is `+most+` with 1 workers; with 9 workers it would be more than `+most)
	rewriteFile(t, at(dir, 1), "server-0000.bin", replaceField(t, `"accepted":(\d+)`, most))
	for _, key := range []string{"iteration", "accepted"} {
		rewriteFile(t, at(dir, 1), "manifest.json", replaceField(t, `"`+key+`": ?(\d+)`, most))
	}
	again().mustRefuse(t, "manifest.json: state.accepted is "+most+" with 1 workers")
}

// With any other policy of local every rank takes over what its checkpoint holds, or all say why they cannot.
func TestResumeWithEveryOtherPolicy(t *testing.T) {
	of := func(policy string) []string {
		set := []string{"train.optimizer={name: sgd, lr: 0.05}"}
		switch policy {
		case local.None:
			return stepping(append(set, "local={policy: none}")...)
		case "streaming_diloco":
			return stepping(append(set, "local={policy: streaming_diloco, steps: 4, fragments: 2}")...)
		}
		return stepping(append(set, "local={policy: "+policy+", steps: 3}")...)
	}
	changed := []string{"sync[0].push", "sync[0].update", "sync[0].weight"}
	for _, key := range strings.Fields("policy steps switch fragments pull dynamic compensate delay keep outer.name outer.lr " +
		"outer.momentum outer.every outer.between") {
		changed = append(changed, "local."+key)
	}
	works := 0
	for _, was := range local.All.Names() {
		if stationtest.UnderRace && was != "hpsgd" {
			continue
		}
		dir := filepath.Join(t.TempDir(), "out")
		leave(t, dir, load(t, of(was)...), 3, 9)
		for _, now := range local.All.Names() {
			f := search{resume: dir, allow: changed, then: func(st *station.Station, q *Origin) error {
				return st.Net.Agree(errors.Join(resumeServer(st, q), resumeWorker(st, q)), station.CodeFailed)
			}}.restore(t, load(t, of(now)...), 3)
			if errors.Join(f.errs...) == nil {
				works++
				continue
			}
			for rank, err := range f.errs {
				if err == nil || !strings.Contains(err.Error(), "local") && !strings.Contains(err.Error(), "fragments") || was == now {
					t.Errorf("%s to %s, rank %d: %v", was, now, rank, err)
				}
			}
		}
	}
	if n := len(local.All.Names()); works < n && !stationtest.UnderRace {
		t.Errorf("%d pairs of %d policies work: each must with itself", works, n)
	}
}
