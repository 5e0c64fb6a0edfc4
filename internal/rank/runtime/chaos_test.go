package runtime

import (
	"fmt"
	"testing"

	"fluentps/internal/comm/faulty"
	"fluentps/internal/comm/inproc"
)

// BSP gives the same bits when messages are delayed and overtake each other, and mixed schemes still end.
func TestDelayedAndReorderedMessagesChangeNothingThatIsPromised(t *testing.T) {
	want := mustTrain(t, load(t), 6).Summary.ParametersSHA256
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			shake := func(set ...string) Result {
				c := load(t, set...)
				ts := faulty.Wrap(inproc.New(6, inproc.Options{}), faulty.Options{Seed: seed, DelayMax: 4})
				res, errs := runOver(t, ts, c, func(o *Options) { o.thresholds.Inline = []int{0, -1, 40}[seed%3] })
				for i, err := range errs {
					if err != nil {
						t.Fatalf("rank %d: %v", i, err)
					}
				}
				return res[0]
			}
			if got := shake("shards.max_bytes=64B").Summary.ParametersSHA256; got != want {
				t.Errorf("sha256 %s, want %s", got, want)
			}
			s := shake("sync=[{match: '*.bias', scheme: asp}, {match: '*', scheme: ssp, staleness: 1, fold: rank}]",
				"train.stop={samples: 2000}").Summary
			for _, sh := range s.PerShard {
				if sh.Pushes != sumIterations(s) || sh.Duplicates != 0 || sh.Skipped != 0 {
					t.Errorf("shard %+v after %d iterations", sh, sumIterations(s))
				}
			}
		})
	}
}
