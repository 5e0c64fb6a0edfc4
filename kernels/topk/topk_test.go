package topk

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/comm/payload"
)

func TestByHand(t *testing.T) {
	x := []float32{1, -3, 2, 3, -0.5, 99}
	for _, c := range []struct {
		k         int
		threshold float32
		indices   []uint32
	}{
		{1, -1, []uint32{1}}, // ties go to the first element
		{3, -1, []uint32{1, 2, 3}},
		{7, -1, []uint32{0, 1, 2, 3, 4}},
		{4, 1, []uint32{1, 2, 3}},
		{2, 1, []uint32{1, 3}},
		{0, 0, nil},
		{5, 3, nil},
	} {
		sent := slices.Repeat([]float32{7}, words(c.k)+1)
		residual := []float32{0, 0, 0, 0, 0, 99}
		send(sent, x, residual, 5, c.k, c.threshold)
		if got := math.Float32bits(sent[0]); int(got) != len(c.indices) {
			t.Fatalf("k=%d threshold=%g: %d are sent, want %v", c.k, c.threshold, got, c.indices)
		}
		rest := append([]float32{}, x...)
		for j, i := range c.indices {
			if got := math.Float32bits(sent[1+2*j]); got != i || sent[2+2*j] != x[i] {
				t.Errorf("k=%d threshold=%g: pair %d is %d: %g, want %d: %g", c.k, c.threshold, j, got, sent[2+2*j], i, x[i])
			}
			rest[i] = 0
		}
		if !slices.Equal(residual, rest) {
			t.Errorf("k=%d threshold=%g: the residual is %v, want %v", c.k, c.threshold, residual, rest)
		}
		if after := sent[words(len(c.indices)):]; !slices.Equal(after, slices.Repeat([]float32{7}, len(after))) {
			t.Errorf("k=%d threshold=%g: the words behind the last pair became %v, want 7", c.k, c.threshold, after)
		}
	}
}

// The message and the residual equal those of the codecs topk and threshold on the same vectors, step by step.
func TestSendsWhatTheCodecsSend(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"topk", "threshold"}).Draw(t, "codec")
		n := rapid.IntRange(1, 300).Draw(t, "n")
		k := rapid.IntRange(1, n).Draw(t, "k")
		p := payload.Params{Ratio: (float64(k) - 0.5) / float64(n), Threshold: float64(rapid.SampledFrom([]float32{0, 0.5, 2}).Draw(t, "threshold"))}
		codec, err := payload.New(name, p)
		if err != nil {
			t.Fatal(err)
		}
		threshold := float32(p.Threshold)
		if name == "topk" {
			threshold = -1
		}
		var residual, kept []float32
		if rapid.Bool().Draw(t, "residual") {
			residual, kept = make([]float32, n), make([]float32, n)
		}
		value := rapid.OneOf(rapid.SampledFrom([]float32{0, 0.5, -0.5, 1, -2, float32(math.Inf(1)), float32(math.NaN())}), rapid.Float32())
		for range 3 {
			x := rapid.SliceOfN(value, n, n).Draw(t, "x")
			want := make([]byte, codec.EncodedMax(n))
			want = want[:codec.Encode(want, x, kept)]
			sent := make([]float32, words(k))
			send(sent, x, residual, n, k, threshold)
			got := make([]byte, 0, len(want))
			for _, w := range sent[:words(int(math.Float32bits(sent[0])))] {
				got = binary.LittleEndian.AppendUint32(got, math.Float32bits(w))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("sent % x, want % x", got, want)
			}
			for i := range residual {
				if math.Float32bits(residual[i]) != math.Float32bits(kept[i]) {
					t.Fatalf("residual %d is %g, want %g", i, residual[i], kept[i])
				}
			}
		}
	})
}
