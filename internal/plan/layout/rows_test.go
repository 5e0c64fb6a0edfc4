package layout

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/payload"
)

// An embedding beside a dense layer, cut anywhere. A push takes the bytes of the rows that some sample touched, at most
// those that the plan states; the decoded values equal the encoded ones, to the bit.
func TestPushesOfRows(t *testing.T) {
	c := configstest.Load(t, "cluster.servers=2", "payload={}")
	partial := 0
	rapid.Check(t, func(t *rapid.T) {
		width, rows := rapid.IntRange(1, 7).Draw(t, "width"), rapid.IntRange(1, 40).Draw(t, "rows")
		params := []shard.Param{{Name: "embedding", N: width * rows, Row: width},
			{Name: "dense", Layer: 1, N: rapid.IntRange(1, 50).Draw(t, "dense")}}
		o := shard.Options{Slice: rapid.SampledFrom(shard.Slices()).Draw(t, "slice"),
			MaxBytes: rapid.Int64Range(4, 200).Draw(t, "max_bytes"), Servers: 2, Rules: []string{"*"},
			RowBytes: func(width, cut, n int) int { return payload.NewRows(width, cut).EncodedMax(n) }}
		plan, err := shard.Cut(params, o)
		if err != nil {
			t.Skip(err)
		}
		routes := NewRoutes(c, plan, shard.Roles{Servers: []int{0, 1}, Workers: []int{2}}, nil, Thresholds{})
		if !routes.EncodesPushes() || routes.EncodesReplies() {
			t.Fatalf("pushes of rows are encoded: %v; replies: %v", routes.EncodesPushes(), routes.EncodesReplies())
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		touched := make([]bool, rows)
		grads := make([]float32, plan.Arena)
		for _, sh := range plan.Shards {
			for _, g := range sh.Segs {
				for i := range g.Hi - g.Lo {
					row := (g.Lo + i) / width
					if g.Param == 1 || row%3 == 0 {
						grads[g.At+i] = r.Float32() + 1
						if g.Param == 0 {
							touched[row] = true
						}
					}
				}
			}
		}
		for i := range plan.Pieces {
			p := &plan.Pieces[i]
			partial += pieceOfRows(t, plan, p, routes, grads[p.Lo:p.Hi], touched)
		}
	})
	if partial == 0 {
		t.Error("no piece began within a row")
	}
}

// pieceOfRows encodes and decodes a piece, and returns 1 if it begins within a row.
func pieceOfRows(t *rapid.T, plan *shard.Plan, p *shard.Piece, routes *Routes, grads []float32, touched []bool) (partial int) {
	codec := routes.PushCodec(p.ID)
	buf := make([]byte, p.PushBytes)
	n := codec.Encode(buf, grads, nil)
	got := make([]float32, len(grads))
	for i := range got {
		got[i] = float32(math.NaN())
	}
	if err := codec.Decode(got, buf[:n]); err != nil || !slices.Equal(got, grads) {
		t.Fatalf("piece %+v: %v, decoded %v of %v", *p, err, got, grads)
	}
	width, cut := plan.Rows(p)
	want := 4 * len(grads)
	if width > 0 {
		want = 4
		for _, g := range plan.Shards[p.Shard].Segs {
			lo, hi := max(p.Lo, g.At), min(p.Hi, g.At+g.Hi-g.Lo)
			for at := lo; at < hi; at++ {
				row := (g.Lo + at - g.At) / width
				if touched[row] {
					want += 4
					if at == lo || (g.Lo+at-g.At)%width == 0 {
						want += 4 // its index
					}
				}
			}
		}
	}
	if n != want {
		t.Fatalf("piece %+v of rows of %d, with %d elements of the first row in another piece: %d bytes, want %d", *p, width, cut, n, want)
	}
	return min(1, cut)
}
