package serve_test

import (
	"fmt"
	"testing"

	"fluentps/internal/comm/faulty"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/sidestest"
)

// BSP gives the same bits when messages are delayed and overtake each other, and mixed schemes still end.
func TestDelayedAndReorderedMessagesChangeNothingThatIsPromised(t *testing.T) {
	want := mustTrain(t, load(t), 6).SHA256()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			shake := func(set ...string) *sidestest.Result {
				ts := faulty.Wrap(inproc.New(6, inproc.Options{}), faulty.Options{Seed: seed, DelayMax: 4})
				return sidestest.Train(t, load(t, set...), 6,
					sidestest.Options{Transports: ts, Thresholds: layout.Thresholds{Inline: []int{0, -1, 40}[seed%3]}})
			}
			if got := shake("shards.max_bytes=64B").SHA256(); got != want {
				t.Errorf("sha256 %s, want %s", got, want)
			}
			got := shake("sync=[{match: '*.bias', scheme: asp}, {match: '*', scheme: ssp, staleness: 1, fold: rank}]", "train.stop={samples: 2000}")
			for _, sh := range got.Shards() {
				if st := sh.State.Stats; st.Pushes != got.Pushes() || st.Duplicates != 0 || st.Skipped != 0 {
					t.Errorf("shard %d: %+v after %d iterations", sh.State.ID, st, got.Pushes())
				}
			}
		})
	}
}
