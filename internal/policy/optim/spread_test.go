package optim

import "testing"

func TestSpreadTakesWhatItSays(t *testing.T) {
	for _, elements := range []int{1, blockElements - 1, blockElements + 1, pieceMin, 3*pieceMin + 5} {
		for _, n := range []int{1, 2, 8} {
			s := NewStore(elements, []Run{{Hi: elements}}, Update{Rule: mustNew(t, spec("sgd")), LR: 1, Sched: Schedule{Name: "constant"}}, Optimize)
			s.Spread(n, nil)
			var got int64
			for i := range s.scratch {
				got += 4 * int64(cap(s.scratch[i].block))
			}
			if want := SpreadBytes(elements, n); got != want {
				t.Errorf("%d elements over %d: %d bytes, SpreadBytes says %d", elements, n, got, want)
			}
		}
	}
}
