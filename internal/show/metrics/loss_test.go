package metrics

import (
	"encoding/json"
	"testing"
)

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

func TestEpochLossIsSavedWhole(t *testing.T) {
	a := EpochLoss{Rows: 10}
	for range 3 {
		a.Add(2, 6)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	b := EpochLoss{Rows: 10}
	if err := json.Unmarshal(text, &b); err != nil || a != b {
		t.Fatalf("%+v was read back as %+v: %v", a, b, err)
	}
}
