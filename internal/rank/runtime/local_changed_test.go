package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
		// Of no steps, of steps that end in a round, that run ahead, and in fragments; internal/rank/resume tries every other pair.
		if underRace && was != "hpsgd" || !slices.Contains([]string{local.None, "diloco", "hpsgd", "streaming_diloco"}, was) {
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
