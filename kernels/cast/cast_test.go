package cast

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"fluentps/comm/payload"
)

func TestByHand(t *testing.T) {
	words := []float32{9, 9, 9}
	packFloat16(words, []float32{1, -2, 1. / 3}, 3)
	if a, b := math.Float32bits(words[0]), math.Float32bits(words[1]); a != 0xc000_3c00 || b != 0x3555 || words[2] != 9 {
		t.Errorf("float16 %#x %#x %g, want 0xc0003c00 0x3555 and 9 as it was", a, b, words[2])
	}
	back := []float32{9, 9, 9, 9}
	unpackFloat16(back, words, 3)
	if back[0] != 1 || back[1] != -2 || back[2] != 1365./4096 || back[3] != 9 {
		t.Errorf("%v, want 1 -2 0.33325195 and 9 as it was", back)
	}
	packBFloat16(words, []float32{1, -2, 1. / 3}, 3)
	if a, b := math.Float32bits(words[0]), math.Float32bits(words[1]); a != 0xc000_3f80 || b != 0x3eab {
		t.Errorf("bfloat16 %#x %#x, want 0xc0003f80 0x3eab", a, b)
	}
	unpackBFloat16(back, words, 3)
	if back[0] != 1 || back[1] != -2 || back[2] != 171./512 || back[3] != 9 {
		t.Errorf("%v, want 1 -2 0.33398438 and 9 as it was", back)
	}
}

// The words hold the bytes that the codecs send, including NaN.
func TestWordsAreWhatTheCodecsSend(t *testing.T) {
	const n = 20001
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = math.Float32frombits(r.Uint32())
		if i%3 > 0 { // in the range of float16, including its subnormal numbers
			x[i] = float32(math.Ldexp(r.Float64()-0.5, r.IntN(46)-28))
		}
	}
	for _, c := range []struct {
		name     string
		to, from func(dst, src []float32, n int)
	}{{"float16", packFloat16, unpackFloat16}, {"bfloat16", packBFloat16, unpackBFloat16}} {
		codec, err := payload.New(c.name, payload.Params{})
		if err != nil {
			t.Fatal(err)
		}
		want := make([]byte, codec.EncodedMax(n))
		codec.Encode(want, x, nil)
		words := make([]float32, words(n))
		c.to(words, x, n)
		got := make([]byte, 4*len(words))
		for i, w := range words {
			binary.LittleEndian.PutUint32(got[4*i:], math.Float32bits(w))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("%s: byte %d of %g is %#x, want %#x", c.name, i%2, x[i/2], got[i], want[i])
			}
		}
		values, decoded := make([]float32, n), make([]float32, n)
		c.from(values, words, n)
		if err := codec.Decode(decoded, want); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if math.Float32bits(v) != math.Float32bits(decoded[i]) {
				t.Fatalf("%s of %g is %g, want %g", c.name, x[i], v, decoded[i])
			}
		}
	}
}
