package metrics

import "testing"

func TestEpochLossIsOfTheLastCompleteEpoch(t *testing.T) {
	l := EpochLoss{Rows: 4}
	if l.Value() != nil {
		t.Error("a value before the first sample")
	}
	for i, c := range []struct{ loss, want float64 }{
		{8, 4}, // half of the first epoch
		{4, 3}, // the first epoch is complete
		{2, 3}, // the second epoch is not complete
		{2, 1},
		{6, 1},
	} {
		l.Add(c.loss, 2)
		if got := l.Value(); got == nil || float64(*got) != c.want {
			t.Errorf("after push %d: %v, want %v", i, got, c.want)
		}
	}
}
