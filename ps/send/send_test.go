package send

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Every policy lets each handed piece go exactly once, and holds nothing once all that left was sent.
func TestEveryPolicyLetsEachPieceGoOnce(t *testing.T) {
	for _, e := range All {
		t.Run(e.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := e.New()
				n := rapid.IntRange(1, 40).Draw(t, "pieces")
				order := rapid.Permutation(seq(n)).Draw(t, "order")
				var flying, gone []int32
				step := func(ev Event) {
					out := p.Step(ev, nil)
					flying, gone = append(flying, out...), append(gone, out...)
				}
				for _, piece := range order {
					step(Event{Kind: Handed, Piece: piece, Bytes: 4096})
					for len(flying) > 0 && rapid.Bool().Draw(t, "sent") {
						var next int32
						next, flying = flying[0], flying[1:]
						step(Event{Kind: Sent, Piece: next, Bytes: 4096})
					}
				}
				for len(flying) > 0 {
					var next int32
					next, flying = flying[0], flying[1:]
					step(Event{Kind: Sent, Piece: next, Bytes: 4096})
				}
				slices.Sort(gone)
				if !slices.Equal(gone, seq(n)) || p.Held() != 0 {
					t.Fatalf("handed %v, let go %v, held %d", order, gone, p.Held())
				}
			})
		})
	}
}

func TestFifoKeepsTheOrderOfReadiness(t *testing.T) {
	e, ok := Lookup("fifo")
	if !ok {
		t.Fatal("fifo is not in the table")
	}
	p := e.New()
	var gone []int32
	for _, piece := range []int32{5, 2, 9, 0} {
		gone = p.Step(Event{Kind: Handed, Piece: piece}, gone)
	}
	if want := []int32{5, 2, 9, 0}; !slices.Equal(gone, want) {
		t.Fatalf("fifo let go %v, want %v", gone, want)
	}
}

func seq(n int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}
