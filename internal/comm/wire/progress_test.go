package wire

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// What a reply tells of the run arrives as it was written, to the bit, and an unknown loss stays unknown.
func TestProgressTravelsWithAReply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Progress{Samples: rapid.Int64Range(0, 1<<60).Draw(t, "samples"), Loss: rapid.Float64().Draw(t, "loss"),
			Share: rapid.Float64Range(0, 1).Draw(t, "share")}
		if rapid.Bool().Draw(t, "unknown") {
			p.Loss = math.NaN()
		}
		h := Header{Kind: Reply, Worker: 1, Iter: 7, Version: 8}
		p.WriteTo(&h)
		b := make([]byte, Size)
		Encode(b, &h)
		back, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		got := ProgressOf(&back)
		if got.Samples != p.Samples || math.Float64bits(got.Loss) != math.Float64bits(p.Loss) || got.Share != p.Share ||
			back.Iter != 7 || back.Version != 8 {
			t.Fatalf("wrote %+v, read %+v in %+v", p, got, back)
		}
	})
}
