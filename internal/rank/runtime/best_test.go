package runtime

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
)

// The best checkpoint is the one with the best result on the test set, among those during training and at the end. It stays
// when others are removed, and a run can be resumed from it by the name best.
func TestTheBestCheckpointIsKept(t *testing.T) {
	for _, by := range []string{"accuracy", "loss"} {
		for _, sync := range []string{"{match: '*', scheme: bsp}", "{match: '*', scheme: asp}"} {
			if underRace && (by == "loss") == strings.Contains(sync, "bsp") { // either measure once, and either scheme
				continue
			}
			t.Run(by+" "+sync, func(t *testing.T) {
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
					root = filepath.Join(dir, checkpoint.Folder)
					var err error
					if dirs, err = checkpoint.List(root); err != nil {
						t.Fatal(err)
					}
				}
				best, err := checkpoint.ReadBest(root)
				if err != nil || best == nil || best.By != by {
					t.Fatalf("the best is %+v: %v", best, err)
				}
				named := false
				for _, d := range dirs { // evaluate each by a run that resumes from it and has nothing left to train
					s := mustRunPart(t, load(t, to("{samples: 1}")...), 6, "", d).Summary
					value := float64(*s.TestLoss)
					ahead := best.Value - value
					if by == "accuracy" {
						value = float64(*s.TestAccuracy)
						ahead = value - best.Value
					}
					if filepath.Base(d) == best.Checkpoint {
						named = true
						if ahead != 0 {
							t.Errorf("the best, %s, has %s %v; it was found to have %v, which is %g more", best.Checkpoint, by, value,
								best.Value, best.Value-value)
						}
					} else if ahead > 0 {
						t.Errorf("%s has %s %v, and the best, %s, %v, which is %g more", d, by, value, best.Checkpoint, best.Value, best.Value-value)
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
			})
		}
	}
}

// With keep: 1 the newest checkpoint is left, and the best one if that is another.
func TestNewestAndBestAreLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, "train.stop={epochs: 30}", "train.optimizer={name: sgd, lr: 3}",
		"evaluate={every_epochs: 0, where: online}", "checkpoint={every_updates: 5, keep: 1, best: loss}"), 6, dir, "")
	root := filepath.Join(dir, checkpoint.Folder)
	dirs, err := checkpoint.List(root)
	if err != nil || len(dirs) == 0 || len(dirs) > 2 {
		t.Fatalf("checkpoints %v, %v", dirs, err)
	}
	best, err := checkpoint.ReadBest(root)
	if err != nil || best == nil || filepath.Base(dirs[len(dirs)-1]) != best.Checkpoint && len(dirs) == 2 {
		t.Errorf("the best is %+v of %v: %v", best, dirs, err)
	}
}

// If the best checkpoint is unknown, none is removed, and no warning says that a checkpoint is missing.
func TestAllCheckpointsStayIfTheBestIsUnknown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	mustRunPart(t, load(t, updates(5)), 6, dir, "")
	root := filepath.Join(dir, checkpoint.Folder)
	if err := os.WriteFile(filepath.Join(root, "best.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	warn, ends := whenSaid(t, "SIGTERM", "earlier ones were not removed: ")
	_, errs := runPart(t, load(t, "train.stop={time: 1h}", "checkpoint={every_updates: 5, keep: 1}"), 6, dir, dir, func(o *Options) {
		o.Warn = warn
		if o.Transport.Rank() == 0 {
			o.Interrupt = ends
		}
	})
	dirs, err := checkpoint.List(root)
	if err != nil || len(dirs) < 3 {
		t.Errorf("checkpoints %v, %v", dirs, err)
	}
	said := warn.String()
	if !strings.Contains(said, "was written, but earlier ones were not removed: ") || strings.Contains(said, "no checkpoint: ") {
		t.Errorf("said %q, errors %v", said, errs)
	}
}
