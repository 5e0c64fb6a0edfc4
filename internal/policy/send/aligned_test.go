package send

import (
	"slices"
	"testing"
)

// order hands 16 layers, last first, to the only destination. The link takes three times as long for a layer as
// backward; late delays backward by so many thirds of a layer's time on the link.
func order(t *testing.T, p Policy, late int) (gone []int32) {
	t.Helper()
	var flying []int32
	for now := 0; len(gone) < 16; now++ {
		var out []int32
		if now%3 == 0 && len(flying) > 0 {
			out = p.Step(Event{Kind: Sent, Piece: flying[0], Bytes: 100}, out)
			flying = flying[1:]
		}
		if layer := int32(15 - now + late); layer >= 0 && layer < 16 {
			out = p.Step(Event{Kind: Handed, Piece: layer, Layer: layer, Shard: layer, Bytes: 100}, out)
		}
		flying, gone = append(flying, out...), append(gone, out...)
		if now > 1000 {
			t.Fatalf("only %v have left", gone)
		}
	}
	for _, piece := range flying {
		p.Step(Event{Kind: Sent, Piece: piece, Bytes: 100}, nil)
	}
	return gone
}

// The second iteration of a policy, when it knows all places.
func TestTheOrderOfLayers(t *testing.T) {
	for name, want := range map[string][]int32{
		"aligned":  {15, 14, 12, 8, 4, 2, 0, 1, 3, 5, 6, 7, 9, 10, 11, 13},
		"priority": {15, 13, 10, 7, 4, 1, 0, 2, 3, 5, 6, 8, 9, 11, 12, 14},
	} {
		e, _ := All.Lookup(name)
		p := e.New(Options{Windows: []int64{100}})
		order(t, p, 0)
		if got := order(t, p, 0); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Of what leaves before backward is over, a worker that is a layer late sends nearly all that another one sends. With
// priority it sends hardly any.
func TestALateWorkerSendsTheSameLayers(t *testing.T) {
	common := func(name string) (n int) {
		e, _ := All.Lookup(name)
		var early [2][]int32
		for late := range early {
			p := e.New(Options{Windows: []int64{100}})
			order(t, p, late)
			got := order(t, p, late)
			early[late] = got[1:slices.Index(got, 0)] // both begin with layer 15
		}
		for _, layer := range early[0] {
			if slices.Contains(early[1], layer) {
				n++
			}
		}
		t.Logf("%s: %v and %v", name, early[0], early[1])
		return n
	}
	if n, other := common("aligned"), common("priority"); n < 4 || n <= other {
		t.Errorf("a late worker has %d early layers in common, with priority %d", n, other)
	}
}
