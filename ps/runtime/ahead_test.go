package runtime

import (
	"errors"
	"testing"

	"fluentps/comm/faulty"
	"fluentps/comm/inproc"
)

// Pushes that are received ahead have the bits of those that are read in shared memory: also when a fold still reads the
// memory that the next one would land in, and when they come before their headers. The first layer has 16 kB.
func TestPushesReceivedAheadHaveTheSameBits(t *testing.T) {
	for _, c := range []struct {
		sync    string
		workers int
	}{
		{"{match: '*', scheme: bsp}", 3},
		{"{match: '*', scheme: asp}", 1},
		{"{match: '*', scheme: softsync, q: 3}", 1},
	} {
		set := []string{"sync=[" + c.sync + "]", "cluster.servers=1", "shards={slice: layer, max_bytes: 1MiB}", "model={name: mlp, layers: [200]}", "train.stop={samples: 480}"}
		want := nearly(t, make([]int, c.workers+1), set...).Summary
		for seed := range uint64(4) {
			ts := faulty.Wrap(inproc.New(c.workers+1, inproc.Options{}), faulty.Options{Seed: seed, DelayMax: int(2 * seed)})
			res, errs := over(t, ts, load(t, append(set, "cluster.shared_memory=off")...), nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if s := res[0].Summary; s.ParametersSHA256 != want.ParametersSHA256 || s.BytesShared != 0 || want.BytesShared == 0 {
				t.Errorf("%s, seed %d: sha256 %s with %d bytes shared, want %s (%d)", c.sync, seed, s.ParametersSHA256, s.BytesShared, want.ParametersSHA256, want.BytesShared)
			}
		}
	}
}
