package payload

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The bytes of messages with keys: 12 a scalar, or 12 a tensor and 4 a value; a pull has only the keys.
func TestLayoutWithKeys(t *testing.T) {
	for _, c := range []struct {
		codec      *Keyed
		push, pull string
	}{
		{KeyedScalars(0x0102, 2), "0201000000000000" + "0301000000000000" + "0000803f" + "000020c0", "0201000000000000" + "0301000000000000"},
		{KeyedRuns([]uint64{7, 1 << 62}, []int{1, 1}), "0700000000000000" + "0000000000000040" + "01000000" + "01000000" +
			"0000803f" + "000020c0", "0700000000000000" + "0000000000000040"},
		{KeyedRuns([]uint64{7}, []int{2}), "0700000000000000" + "02000000" + "0000803f" + "000020c0", "0700000000000000"},
	} {
		dst := make([]byte, c.codec.EncodedMax(2))
		if n := c.codec.Encode(dst, []float32{1, -2.5}, nil); n != len(dst) || hex.EncodeToString(dst) != c.push {
			t.Errorf("%d bytes %x, want %s", n, dst, c.push)
		}
		keys := make([]byte, c.codec.KeysBytes())
		if c.codec.EncodeKeys(keys); hex.EncodeToString(keys) != c.pull {
			t.Errorf("keys %x, want %s", keys, c.pull)
		}
		if err := c.codec.DecodeKeys(keys); err != nil {
			t.Error(err)
		}
	}
}

func drawKeyed(t *rapid.T) (*Keyed, int) {
	if rapid.Bool().Draw(t, "scalars") {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		return KeyedScalars(rapid.Uint64Range(0, math.MaxUint64-64).Draw(t, "first"), n), n
	}
	key, n := uint64(0), 0
	var keys []uint64
	var lengths []int
	for range rapid.IntRange(1, 9).Draw(t, "runs") {
		key += rapid.Uint64Range(1, 1<<59).Draw(t, "key")
		length := rapid.IntRange(1, 9).Draw(t, "length")
		keys, lengths, n = append(keys, key), append(lengths, length), n+length
	}
	return KeyedRuns(keys, lengths), n
}

// Decoding restores all values to the bit, and refuses any change to a key or a length, in a push and in a pull:
// another key, a repeated key, or too few bytes.
func TestEveryKeyIsLookedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		codec, n := drawKeyed(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		src, dst := make([]float32, n), make([]float32, n)
		for i := range src {
			src[i] = math.Float32frombits(rng.Uint32())
		}
		wire := make([]byte, codec.EncodedMax(n))
		if got := codec.Encode(wire, src, nil); got != len(wire) {
			t.Fatalf("%d bytes of %d", got, len(wire))
		}
		if err := codec.Decode(dst, wire); err != nil || !sameBits(src, dst) {
			t.Fatalf("%v, %v came back as %v", err, src, dst)
		}
		keys := make([]byte, codec.KeysBytes())
		codec.EncodeKeys(keys)
		if err := codec.DecodeKeys(keys); err != nil {
			t.Fatal(err)
		}
		// Any change to the bytes before the values.
		at := rapid.IntRange(0, codec.head()-1).Draw(t, "at")
		change := byte(rapid.IntRange(1, 255).Draw(t, "change"))
		wire[at] ^= change
		if err := codec.Decode(dst, wire); err == nil {
			t.Fatalf("byte %d of %d was changed by %#x, and Decode accepted it", at, codec.head(), change)
		}
		if at < len(keys) {
			keys[at] ^= change
			if err := codec.DecodeKeys(keys); err == nil {
				t.Fatalf("byte %d of the keys was changed by %#x, and DecodeKeys accepted it", at, change)
			}
		}
		wire[at] ^= change
		if codec.Decode(dst, wire[:len(wire)-1]) == nil || codec.Decode(dst[:n-1], wire) == nil || codec.DecodeKeys(keys[:len(keys)-1]) == nil {
			t.Fatal("an input that is too short was accepted")
		}
	})
}

func TestErrorsOfWrongKeys(t *testing.T) {
	codec := KeyedScalars(100, 3)
	wire := make([]byte, codec.EncodedMax(3))
	for _, c := range []struct {
		second uint64
		want   string
	}{
		{99, "received key 99, but the 3 keys here are from 100 to 102"},
		{103, "received key 103, but the 3 keys here are from 100 to 102"},
		{100, "received key 100 after key 100: keys must ascend"},
	} {
		codec.Encode(wire, make([]float32, 3), nil)
		binary.LittleEndian.PutUint64(wire[8:], c.second)
		for _, err := range []error{codec.Decode(make([]float32, 3), wire), codec.DecodeKeys(wire[:24])} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		}
	}
	runs := KeyedRuns([]uint64{5, 9}, []int{2, 1})
	wire = make([]byte, runs.EncodedMax(3))
	runs.Encode(wire, make([]float32, 3), nil)
	binary.LittleEndian.PutUint32(wire[16:], 1)
	if err := runs.Decode(make([]float32, 3), wire); err == nil ||
		!strings.Contains(err.Error(), "key 5 with 1 values, but here it has 2") {
		t.Errorf("got %v", err)
	}
}

// FuzzKeyed decodes any bytes. They are refused, or the vector decoded from them survives a round trip.
func FuzzKeyed(f *testing.F) {
	codecs := []*Keyed{KeyedScalars(7, 5), KeyedRuns([]uint64{3, 9, 1 << 63}, []int{2, 1, 2})}
	for i, k := range codecs {
		b := make([]byte, k.EncodedMax(5))
		k.Encode(b, []float32{1, 2, 3, 4, 5}, nil)
		f.Add(uint8(i), b)
	}
	f.Fuzz(func(t *testing.T, which uint8, in []byte) {
		k := codecs[int(which)%len(codecs)]
		_ = k.DecodeKeys(in)
		dst := make([]float32, 5)
		if k.Decode(dst, in) != nil {
			return
		}
		b := make([]byte, k.EncodedMax(5))
		k.Encode(b, dst, nil)
		if again := make([]float32, 5); k.Decode(again, b) != nil {
			t.Fatalf("%v fails the round trip", dst)
		}
	})
}
