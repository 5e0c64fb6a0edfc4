package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var sample = Header{
	Kind: Push, Flags: Stop, Worker: 1, Shard: 2, Part: 3, Parts: 4, Owner: -5, Epoch: 11,
	Iter: 6, Version: 7, Samples: 8, Correct: 9, Loss: 1.5, Blocked: -1, Clock: 10,
}

// The bytes themselves are the contract between builds: a change needs a new Version.
func TestLayout(t *testing.T) {
	want := "6670" + "0b" + "01" + "01" + "000000" +
		"01000000" + "02000000" + "03000000" + "04000000" + "fbffffff" + "0b000000" +
		"0600000000000000" + "0700000000000000" + "0800000000000000" + "0900000000000000" +
		"000000000000f83f" + "ffffffffffffffff" + "0a00000000000000"
	got := bytes.Repeat([]byte{0xAA}, Size+2)
	Encode(got, &sample)
	if hex.EncodeToString(got[:Size]) != want {
		t.Fatalf("layout\n got %x\nwant %s", got[:Size], want)
	}
	if got[Size] != 0xAA || got[Size+1] != 0xAA {
		t.Fatal("Encode wrote past Size")
	}
}

func TestDecodeRefuses(t *testing.T) {
	edit := func(at int, v byte) []byte {
		b := make([]byte, Size)
		Encode(b, &sample)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"empty", nil, "0 bytes, a header has 88"},
		{"short", edit(4, 0)[:87], "87 bytes, a header has 88"},
		{"magic", edit(0, 'x'), "0x7078"},
		{"older", edit(2, 0), "the sender has 0, this binary 11; start all ranks from one build"},
		{"newer and shorter", edit(2, 12)[:40], "the sender has 12, this binary 11"},
		{"kind 0", edit(3, 0), "unknown kind(0), this binary knows 1 to 39"},
		{"kind after the last", edit(3, byte(Kinds)), "unknown kind(40)"},
		{"reserved", edit(6, 1), "reserved bytes of a push"},
	} {
		_, err := Decode(c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
		if got, want := errors.Is(err, ErrVersion), strings.Contains(c.want, "sender has"); got != want {
			t.Errorf("%s: Is(ErrVersion) is %v", c.name, got)
		}
	}
}

// A field missing from the layout would be decoded as zero.
func TestTheSampleSetsEveryField(t *testing.T) {
	v := reflect.ValueOf(sample)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			t.Errorf("the sample leaves %s zero, so TestLayout and the round trip do not see it", v.Type().Field(i).Name)
		}
	}
	b := make([]byte, Size)
	Encode(b, &sample)
	if got, err := Decode(b); err != nil || got != sample {
		t.Errorf("got %+v, %v; want %+v", got, err, sample)
	}
}

func TestEncodeRefusesUnknownKind(t *testing.T) {
	for _, k := range []Kind{0, PushPiece, ReplyPiece, PieceThere, Kinds, 255} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Encode of %v did not panic", k)
				}
			}()
			Encode(make([]byte, Size), &Header{Kind: k})
		}()
	}
}

func TestKindNames(t *testing.T) {
	want := "push pull reply ack left snapshot ready looked halt pushready grant revoke publish taken ended joined " +
		"closed normed barrier release task readable forwarded summand saved stale peer computed measured dealt vote verdict " +
		"askwaits waits evaluate evaluated pushpiece replypiece piecethere"
	var names []string
	for k := Push; k < Kinds; k++ {
		names = append(names, k.String())
	}
	if got := strings.Join(names, " "); got != want {
		t.Fatalf("kinds are %q, want %q", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i32, i64 := rapid.Int32(), rapid.Int64()
		h := Header{
			Kind: Kind(rapid.IntRange(1, int(PushPiece)-1).Draw(t, "kind")), Flags: rapid.Byte().Draw(t, "flags"),
			Worker: i32.Draw(t, "worker"), Shard: i32.Draw(t, "shard"), Part: i32.Draw(t, "part"),
			Parts: i32.Draw(t, "parts"), Owner: i32.Draw(t, "owner"), Epoch: i32.Draw(t, "epoch"),
			Iter: i64.Draw(t, "iter"), Version: i64.Draw(t, "version"), Samples: i64.Draw(t, "samples"),
			Correct: i64.Draw(t, "correct"), Blocked: i64.Draw(t, "blocked"), Clock: i64.Draw(t, "clock"),
			Loss: math.Float64frombits(rapid.Uint64().Draw(t, "loss")),
		}
		b := make([]byte, Size+rapid.IntRange(0, 9).Draw(t, "payload"))
		Encode(b, &h)
		got, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if math.Float64bits(got.Loss) != math.Float64bits(h.Loss) {
			t.Fatalf("loss %x came back as %x", math.Float64bits(h.Loss), math.Float64bits(got.Loss))
		}
		got.Loss, h.Loss = 0, 0 // compared as bits: NaN is not itself
		if got != h {
			t.Fatalf("%+v came back as %+v", h, got)
		}
	})
}

// Decode does not panic on any bytes, and bytes that it accepts encode to themselves.
func FuzzDecode(f *testing.F) {
	for k := Push; k < PushPiece; k++ {
		b := make([]byte, Size)
		h := sample
		h.Kind = k
		Encode(b, &h)
		f.Add(b)
		f.Add(append(b, 1, 2, 3))
		f.Add(b[:Size-1])
	}
	f.Add([]byte{})
	f.Add([]byte("fp"))
	f.Add([]byte{'f', 'p', Version})
	f.Add(bytes.Repeat([]byte{0xFF}, Size))
	f.Fuzz(func(t *testing.T, in []byte) {
		h, err := Decode(in)
		if err != nil {
			return
		}
		out := make([]byte, Size)
		Encode(out, &h)
		if !bytes.Equal(out, in[:Size]) {
			t.Fatalf("accepted %x, encodes to %x", in[:Size], out)
		}
	})
}
