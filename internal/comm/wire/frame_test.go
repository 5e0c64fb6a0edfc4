package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func piece(kind Kind, id int32, data []byte) []byte {
	b := make([]byte, PieceSize, PieceSize+len(data))
	EncodePiece(b, kind, id, len(data))
	return append(b, data...)
}

func header(h Header) []byte {
	b := make([]byte, Size)
	Encode(b, &h)
	return b
}

// The bytes themselves are the contract between builds.
func TestPieceLayout(t *testing.T) {
	got := bytes.Repeat([]byte{0xAA}, PieceSize+2)
	EncodePiece(got, ReplyPiece, 0x01020304, 0x0506)
	if want := "6670" + "0b" + "26" + "04030201" + "06050000" + "aaaa"; hex.EncodeToString(got) != want {
		t.Errorf("layout\n got %x\nwant %s", got, want)
	}
}

func TestEncodePieceRefuses(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		piece int32
		n     int
	}{{Push, 0, 4}, {Kinds, 0, 4}, {PushPiece, -1, 4}, {PushPiece, 0, 0}, {ReplyPiece, 0, -1}, {PieceThere, 0, 4}, {PieceThere, -1, 0}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("EncodePiece of %+v did not panic", c)
				}
			}()
			EncodePiece(make([]byte, PieceSize), c.kind, c.piece, c.n)
		}()
	}
}

func TestNextRefuses(t *testing.T) {
	whole := piece(PushPiece, 3, []byte{1, 2, 3, 4})
	edit := func(at int, v byte) []byte {
		b := bytes.Clone(whole)
		b[at] = v
		return b
	}
	for _, c := range []struct {
		name string
		in   []byte
		want string
	}{
		{"empty", nil, "0 bytes"},
		{"magic", edit(0, 'x'), "0x7078"},
		{"older", edit(2, 2), "the sender has 2, this binary 11"},
		{"only half a head", whole[:PieceSize-1], "11 bytes, a header has 88"},
		{"negative piece", edit(7, 0x80), "the message is damaged"},
		{"no bytes", edit(8, 0), "of 0 bytes with 4 bytes left"},
		{"too few bytes", whole[:len(whole)-1], "of 4 bytes with 3 bytes left"},
		{"far too many", edit(11, 0xFF), "bytes with 4 bytes left"},
		{"bytes of a piece in shared memory", edit(3, byte(PieceThere)), "of 4 bytes with 4 bytes left"},
		{"no such kind", edit(3, byte(Kinds)), "16 bytes, a header has 88"},
	} {
		_, _, err := Next(c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q in it", c.name, err, c.want)
		}
		if got, want := errors.Is(err, ErrVersion), strings.Contains(c.want, "sender has"); got != want {
			t.Errorf("%s: Is(ErrVersion) is %v", c.name, got)
		}
	}
	long := append(bytes.Clone(whole), make([]byte, Size)...)
	if _, err := Decode(long); err == nil || !strings.Contains(err.Error(), "a pushpiece where a header must be") {
		t.Errorf("Decode of a piece: %v", err)
	}
}

// Any frame decodes record by record.
func TestFramesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var frame []byte
		var want [][]byte
		for range rapid.IntRange(1, 6).Draw(t, "records") {
			var b []byte
			if rapid.Bool().Draw(t, "header") {
				b = header(Header{Kind: Kind(rapid.IntRange(1, int(PushPiece)-1).Draw(t, "kind")), Shard: rapid.Int32().Draw(t, "shard")})
			} else {
				kind := rapid.SampledFrom([]Kind{PushPiece, ReplyPiece, PieceThere}).Draw(t, "kind")
				var data []byte
				if kind != PieceThere {
					data = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "data")
				}
				b = piece(kind, rapid.Int32Min(0).Draw(t, "piece"), data)
			}
			want = append(want, b)
			frame = append(frame, b...)
		}
		for i, rest := 0, frame; len(rest) > 0; i++ {
			r, after, err := Next(rest)
			if err != nil {
				t.Fatal(err)
			}
			if r.Size != len(want[i]) || len(rest)-len(after) != r.Size || !bytes.Equal(again(r), want[i]) {
				t.Fatalf("record %d is %+v, of %x", i, r, want[i])
			}
			rest = after
		}
	})
}

// again encodes a decoded record.
func again(r Record) []byte {
	if r.Kind >= PushPiece {
		return piece(r.Kind, r.Piece, r.Data)
	}
	return header(r.Header)
}

// Next does not panic on any bytes or read past the frame, and bytes that it accepts encode to themselves.
func FuzzNext(f *testing.F) {
	f.Add(header(sample))
	f.Add(append(append(header(sample), piece(PushPiece, 7, []byte{1, 2, 3, 4})...), header(Header{Kind: Pull})...))
	f.Add(piece(ReplyPiece, 0, []byte{1}))
	f.Add(piece(PieceThere, 5, nil))
	f.Add(piece(ReplyPiece, 0, []byte{1, 2})[:PieceSize+1])
	f.Add(piece(ReplyPiece, 0, []byte{1, 2})[:3])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, in []byte) {
		var out []byte
		for rest := in; len(rest) > 0; {
			r, after, err := Next(rest)
			if err != nil {
				break
			}
			out = append(out, again(r)...)
			rest = after
		}
		if !bytes.Equal(out, in[:len(out)]) {
			t.Fatalf("accepted %x, encodes to %x", in[:len(out)], out)
		}
	})
}
