package coordinate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/internal/show/metrics"
)

// The best checkpoint is the one with the best result on the test set, among those during training and at the end. It stays
// when others are removed, and a run can be resumed from it by the name best.
func TestTheBestCheckpointIsKept(t *testing.T) {
	for _, by := range []string{"accuracy", "loss"} {
		for _, sync := range []string{"{match: '*', scheme: bsp}", "{match: '*', scheme: asp}"} {
			if stationtest.UnderRace && (by == "loss") == strings.Contains(sync, "bsp") { // either measure once, and either scheme
				continue
			}
			t.Run(by+" "+sync, func(t *testing.T) { theBestIsKept(t, by, sync) })
		}
	}
}

func theBestIsKept(t *testing.T, by, sync string) {
	to := func(stop string) []string {
		return []string{"sync=[" + sync + "]", "train.stop=" + stop, "train.optimizer={name: sgd, lr: 3}",
			"evaluate={every_epochs: 1, where: online}", "checkpoint={every_updates: 10, keep: 1000, best: " + by + "}",
			"data.partition=overlap_reshuffle"}
	}
	root, dirs := "", []string(nil)
	for epochs := 30; len(dirs) < 2; epochs *= 4 { // on a busy disk a run may end before its second checkpoint
		if epochs > 10_000 {
			t.Fatalf("checkpoints %v", dirs)
		}
		dir := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, load(t, to(fmt.Sprintf("{epochs: %d}", epochs))...), 6, dir, "")
		root, dirs = filepath.Join(dir, checkpoint.Folder), checkpointsOf(t, dir, 0)
	}
	best, err := checkpoint.ReadBest(root)
	if err != nil || best == nil || best.By != by {
		t.Fatalf("the best is %+v: %v", best, err)
	}
	valueOf := func(s *metrics.Summary) (value, ahead float64) { // ahead: by how much it is better than the best
		if by == "accuracy" {
			value = float64(*s.TestAccuracy)
			return value, value - best.Value
		}
		value = float64(*s.TestLoss)
		return value, best.Value - value
	}
	named := false
	if n := 4; stationtest.UnderRace && len(dirs) > n { // one that resumes runs what another one does
		at := slices.IndexFunc(dirs, func(d string) bool { return filepath.Base(d) == best.Checkpoint })
		dirs = append(dirs[:n:n], dirs[max(at, n)])
	}
	for _, d := range dirs { // evaluate each by a run that resumes from it and has nothing left to train
		value, ahead := valueOf(mustRunPart(t, load(t, to("{samples: 1}")...), 6, "", d).Summary)
		if filepath.Base(d) == best.Checkpoint {
			named = true
			if ahead != 0 {
				t.Errorf("the best, %s, has %s %v; it was found to have %v", best.Checkpoint, by, value, best.Value)
			}
		} else if ahead > 0 {
			t.Errorf("%s has %s %v, and the best, %s, %v, which is %g less", d, by, value, best.Checkpoint, best.Value, ahead)
		}
	}
	if !named {
		t.Fatalf("the best is %s, and there are %v", best.Checkpoint, dirs)
	}
	if err := checkpoint.Prune(durable.Below(filepath.Dir(root)), 1); err != nil {
		t.Fatal(err)
	}
	s := mustRunPart(t, load(t, to("{samples: 1}")...), 6, "", filepath.Join(root, checkpoint.BestName)).Summary
	if s.Resumed == nil || filepath.Base(s.Resumed.Checkpoint) != best.Checkpoint {
		t.Errorf("--resume best resumed from %+v, not %s", s.Resumed, best.Checkpoint)
	}
}

// With keep: 1 the newest checkpoint is left, and the best one if that is another.
func TestNewestAndBestAreLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, "train.stop={epochs: 30}", "train.optimizer={name: sgd, lr: 3}",
		"evaluate={every_epochs: 0, where: online}", "checkpoint={every_updates: 5, keep: 1, best: loss}"), 6, dir, "")
	dirs := checkpointsOf(t, dir, 1)
	best, err := checkpoint.ReadBest(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) > 2 || best == nil || filepath.Base(dirs[len(dirs)-1]) != best.Checkpoint && len(dirs) == 2 {
		t.Errorf("the best is %+v of %v: %v", best, dirs, err)
	}
}

// hearing is lines that call a function when a text has been written.
type hearing struct {
	lines
	text string
	once sync.Once
	then func()
}

func (h *hearing) Write(p []byte) (int, error) {
	n, err := h.lines.Write(p)
	if strings.Contains(h.String(), h.text) {
		h.once.Do(h.then)
	}
	return n, err
}

// If the best checkpoint is unknown, none is removed, and no warning says that a checkpoint is missing.
func TestAllCheckpointsStayIfTheBestIsUnknown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, updates(5)), 6, dir, "")
	if err := os.WriteFile(filepath.Join(dir, checkpoint.Folder, "best.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &part{config: load(t, endless, "checkpoint={every_updates: 5, keep: 1}"), ranks: 6, dir: dir, resume: dir}
	warn := &hearing{text: "was written, but earlier ones were not removed: "}
	warn.then = func() { p.signal(0, "SIGTERM", false) }
	p.warn = warn
	p.mustEnd(t, station.CodeAgain)
	checkpointsOf(t, dir, 3)
	if said := warn.String(); strings.Contains(said, "no checkpoint: ") {
		t.Errorf("said %q", said)
	}
}
