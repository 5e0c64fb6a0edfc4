package runtime

import (
	"path/filepath"
	"slices"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
)

// shareAllShards lets even the shortest shard go through shared memory.
func shareAllShards(o *Options) { o.thresholds.Shared = 1 }

// A checkpoint during training reads the version where workers read it, in shared memory: the version on disk equals that
// of a run that saves none.
func TestVersionsAreSavedFromSharedMemory(t *testing.T) {
	for _, placement := range []string{"spread", "colocate"} {
		t.Run(placement, func(t *testing.T) {
			n := map[string]int{"spread": 6, "colocate": 4}[placement]
			set := []string{"model={name: mlp, layers: [24, 16]}", "shards={slice: layer, max_bytes: 256B}",
				"evaluate.every_epochs=0", "checkpoint.keep=1000", "cluster.placement=" + placement}
			with := func(more ...string) *configs.Config { return load(t, append(slices.Clone(set), more...)...) }
			dir := filepath.Join(t.TempDir(), "out")
			signals, ended := make(chan string, 1), make(chan struct{})
			go interruptAt(dir, 3, signals, ended)
			res, errs := runPart(t, with("train.stop={time: 1h}", "checkpoint.every_updates=2"), n, dir, "", func(o *Options) {
				shareAllShards(o)
				if o.Transport.Rank() == 0 {
					o.Interrupt = signals
				}
			})
			close(ended)
			if s := mustAgree(t, CodeAgain, res, errs).Summary; s.BytesShared == 0 {
				t.Error("nothing went through shared memory: the test looks at nothing")
			}
			dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
			if err != nil || len(dirs) < 3 {
				t.Fatalf("checkpoints %v, %v", dirs, err)
			}
			for _, d := range dirs[:3] {
				m, err := checkpoint.Open(d)
				if err != nil {
					t.Fatal(err)
				}
				want := mustTrain(t, with(updates(m.Iteration+5)), n).Summary.ParametersSHA256
				if got := mustRunPart(t, with(updates(m.Iteration+5)), n, "", d).Summary.ParametersSHA256; got != want {
					t.Errorf("from iteration %d in %s: sha256 %s, want %s", m.Iteration, d, got, want)
				}
			}
		})
	}
}
