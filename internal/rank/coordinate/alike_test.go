package coordinate

import (
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/ps/workload/dataset"
)

// A push of an iteration, with the mean loss of its 8 samples.
type told struct {
	worker int32
	iter   int64
	loss   float64
}

func TestWorkersOnTheSameSamplesAreNoticed(t *testing.T) {
	same := []told{{0, 0, 2.3}, {1, 0, 2.3}, {1, 1, 2.2}, {0, 1, 2.2}, {0, 2, 2.1}}
	for name, k := range map[string]struct {
		pushes []told
		warns  bool
	}{
		"same":             {append(same, told{1, 2, 2.1}), true},
		"same, with zeros": {[]told{{1, 0, 2.3}, {0, 0, 2.3}, {0, 1, 2.3}, {1, 1, 2.3}, {0, 2, 2.2}, {1, 2, 2.2}}, true},
		"too early":        {same, false},
		"other samples":    {append(same, told{1, 2, 2.1000001}), false},
		"the last two of three": {[]told{{0, 0, 2.4}, {1, 0, 2.3}, {2, 0, 2.3}, {1, 1, 2.2}, {0, 1, 2.1}, {2, 1, 2.2}, {2, 2, 2.1},
			{0, 2, 2}, {1, 2, 2.1}}, true},
		"pairs that change": {[]told{{0, 0, 1}, {1, 0, 1}, {2, 0, 2}, {0, 1, 3}, {1, 1, 4}, {2, 1, 4}, {0, 2, 5}, {1, 2, 6},
			{2, 2, 5}}, false},
		"constant":            {[]told{{0, 0, 1}, {1, 0, 1}, {0, 1, 1}, {1, 1, 1}, {0, 2, 1}, {1, 2, 1}}, false},
		"zeros, then others":  {[]told{{0, 0, 2.3}, {1, 0, 2.3}, {0, 1, 2.2}, {1, 1, 2.25}, {0, 2, 2.1}, {1, 2, 2.15}}, false},
		"later iterations":    {[]told{{0, 3, 2.3}, {1, 3, 2.3}, {0, 4, 2.2}, {1, 4, 2.2}, {0, 5, 2.1}, {1, 5, 2.1}}, false},
		"twice by one worker": {[]told{{0, 0, 2.3}, {0, 0, 2.3}, {0, 1, 2.2}, {0, 1, 2.2}, {0, 2, 2.1}, {0, 2, 2.1}}, false},
	} {
		a := newAlike(&configs.Config{Data: dataset.Keys{Deal: dataset.Dealing{Sampler: dataset.SamplerScript}}}, 2)
		warned := 0
		for _, p := range append(k.pushes, k.pushes...) {
			if a.folded(&wire.Header{Worker: p.worker, Iter: p.iter, Loss: 8 * p.loss, Samples: 8}) != "" {
				warned++
			}
		}
		if (warned == 1) != k.warns || warned > 1 {
			t.Errorf("%s: %d warnings", name, warned)
		}
	}
	if a := newAlike(&configs.Config{}, 2); a.on {
		t.Error("rows that the run picks are never the same")
	}
}
