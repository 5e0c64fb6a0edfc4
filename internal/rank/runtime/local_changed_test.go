package runtime

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/policy/local"
)

// A run resumes with another policy of local, or every rank says why it cannot.
func TestResumeWithAnotherPolicy(t *testing.T) {
	of := func(policy string) string {
		switch policy {
		case local.None:
			return "local={policy: none}"
		case "streaming_diloco":
			return "local={policy: streaming_diloco, steps: 4, fragments: 2}"
		}
		return "local={policy: " + policy + ", steps: 3}"
	}
	changed := strings.Split("policy steps switch fragments pull dynamic compensate delay keep outer.name outer.lr "+
		"outer.momentum outer.every outer.between", " ")
	for i := range changed {
		changed[i] = "local." + changed[i]
	}
	changed = append(changed, "sync[0].push", "sync[0].update", "sync[0].weight")
	const sgd, most = "train.optimizer={name: sgd, lr: 0.05}", "checkpoint.keep=1000"
	works := map[string]int{}
	for _, was := range local.All.Names() {
		if underRace && was != "hpsgd" {
			continue
		}
		first := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, toUpdates(t, 9, of(was), sgd, most), 6, first, "")
		from := readManifest(t, filepath.Join(first, checkpoint.Folder, "000000000001"))
		for _, now := range local.All.Names() {
			dir := filepath.Join(t.TempDir(), "out")
			if err := os.CopyFS(dir, os.DirFS(first)); err != nil {
				t.Fatal(err)
			}
			res, errs := runPart(t, toUpdates(t, from.State.Version+11, of(now), sgd, most), 6, dir, dir,
				func(o *Options) { o.AllowChanged = changed })
			if errors.Join(errs...) == nil {
				if s := res[0].Summary; s.Updates != from.State.Version+11 || s.Samples <= from.Samples || was != local.None && now == local.None {
					t.Errorf("%s to %s: %d updates and %d samples, after %d and %d", was, now, s.Updates, s.Samples, from.State.Version, from.Samples)
				}
				works[was]++
				continue
			}
			for rank, err := range errs {
				if err == nil || !strings.Contains(err.Error(), "local") && !strings.Contains(err.Error(), "fragments") || was == now {
					t.Fatalf("%s to %s, rank %d: %v", was, now, rank, err)
				}
			}
		}
	}
	if !underRace && (works[local.None] < 4 || works["diloco"] < 3) {
		t.Errorf("resumed with another policy: %v", works)
	}
}

// What a worker saved of its own steps may have values that no run wrote. The error names the field, and the run resumes from the
// checkpoint before.
func TestInvalidOwnStepsAreNamed(t *testing.T) {
	hpsgd := []string{"local={policy: hpsgd, steps: 3}"}
	adacomm := []string{"local={policy: averaging, steps: 8, period: {name: adacomm, interval: 2}}"}
	streaming := []string{"local={policy: streaming_diloco, steps: 6, fragments: 3, delay: 1}"}
	origins, wants := map[string]string{}, map[string]string{}
	for _, set := range [][]string{hpsgd, adacomm, streaming} {
		dir := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, toUpdates(t, 5, set...), 6, dir, "")
		mustRunPart(t, toUpdates(t, 9, set...), 6, dir, dir)
		origins[set[0]], wants[set[0]] = dir, mustTrain(t, toUpdates(t, 12, set...), 6).Summary.ParametersSHA256
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
		t.Run(c.say, func(t *testing.T) {
			if underRace {
				t.Skip("the same code as without")
			}
			dir := filepath.Join(t.TempDir(), "out")
			if err := os.CopyFS(dir, os.DirFS(origins[c.set[0]])); err != nil {
				t.Fatal(err)
			}
			rewriteFile(t, filepath.Join(dir, checkpoint.Folder, "000000000002"), "worker-0001.bin", replaceField(t, c.pattern, c.by))
			var warn lines
			res, errs := runPart(t, toUpdates(t, 12, c.set...), 6, dir, dir, func(o *Options) { o.Warn = &warn })
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if s := res[0].Summary; s.Resumed == nil || s.Resumed.Iteration != 5 || s.ParametersSHA256 != wants[c.set[0]] {
				t.Errorf("resumed at %+v to sha256 %.12s, want %.12s", s.Resumed, s.ParametersSHA256, wants[c.set[0]])
			}
			if !strings.Contains(warn.String(), c.say) || !strings.Contains(warn.String(), "worker-0001.bin") {
				t.Errorf("no word of %q in %s", c.say, warn.String())
			}
		})
	}
	for at, say := range map[int]string{0: "of vector 1 of its own parameters is NaN", -1: "of vector 2 of its own parameters is NaN"} {
		set := append([]string{"train.optimizer={name: sgd, lr: 0.05}"}, hpsgd...)
		dir := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, toUpdates(t, 5, set...), 6, dir, "")
		rewriteFile(t, filepath.Join(dir, checkpoint.Folder, "000000000001"), "worker-0001.bin", replaceElement(at, math.NaN()))
		_, errs := runPart(t, toUpdates(t, 9, set...), 6, dir, dir, nil)
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("element %d: %v, want %q", at, err, say)
		}
	}
}

// readManifest reads the manifest of a checkpoint, and of the state of rank 0 what tests need.
func readManifest(t *testing.T, dir string) (m struct {
	Samples int64
	State   struct{ Version int64 }
}) {
	t.Helper()
	q, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.Samples = q.Samples
	if _, err := fmt.Sscanf(string(q.State)[strings.Index(string(q.State), `"version":`):], `"version":%d`, &m.State.Version); err != nil {
		t.Fatal(err)
	}
	return m
}
