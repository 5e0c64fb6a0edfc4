package external

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A message that was sent is received as it was.
func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Message{Kind: Kind(rapid.IntRange(1, int(kinds)-1).Draw(t, "kind")), A: rapid.Uint32().Draw(t, "a"), B: rapid.Uint64().Draw(t, "b")}
		m.Flags = uint8(rapid.IntRange(0, int(flagsMax[m.Kind])).Draw(t, "flags"))
		if m.Kind == Hello || m.Kind == Tensor || m.Kind == Fail {
			m.Text = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "text")
		}
		got, err := decode(m.appendTo(nil))
		if err != nil || got.Kind != m.Kind || got.Flags != m.Flags || got.A != m.A || got.B != m.B || !bytes.Equal(got.Text, m.Text) {
			t.Fatalf("%+v: read %+v, %v", m, got, err)
		}
	})
}

// The bytes of a message are those of PROTOCOL.md.
func TestTheBytesOfAMessage(t *testing.T) {
	m := Message{Kind: Tensor, Flags: IsStatistic, A: 0x01020304, B: 0x1112131415161718, Text: []byte("l\nn\n1")}
	want := []byte{2, 1, 0, 0, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, 'l', '\n', 'n', '\n', '1'}
	if got := m.appendTo(nil); !bytes.Equal(got, want) {
		t.Errorf("% x, want % x", got, want)
	}
	if Bye != 19 || kinds != 20 {
		t.Errorf("BYE is %d, the last but %d", Bye, kinds)
	}
}

// A packet that is no message is refused with what is wrong.
func TestPacketsThatAreNoMessages(t *testing.T) {
	head := func(change func(b []byte)) []byte {
		b := (&Message{Kind: Ready}).appendTo(nil)
		change(b)
		return b
	}
	for want, b := range map[string][]byte{
		"a message of 0 bytes":                          nil,
		"a message of 15 bytes":                         make([]byte, 15),
		"a message of more than 60016 bytes":            (&Message{Kind: Fail, Text: make([]byte, textBytesMax+1)}).appendTo(nil),
		"message of kind 0, which is not known":         head(func(b []byte) { b[0] = 0 }),
		"message of kind 20, which is not known":        head(func(b []byte) { b[0] = 20 }),
		"message of kind 255":                           head(func(b []byte) { b[0] = 255 }),
		"READY with bytes 2 and 3 1 and 0":              head(func(b []byte) { b[2] = 1 }),
		"READY with bytes 2 and 3 0 and 9":              head(func(b []byte) { b[3] = 9 }),
		"READY with flags 1, the largest is 0":          head(func(b []byte) { b[1] = 1 }),
		"FORWARD with flags 2, the largest is 1":        head(func(b []byte) { b[0], b[1] = byte(Forward), 2 }),
		"READY with 1 bytes behind it, which have no m": append(head(func([]byte) {}), 0),
	} {
		if m, err := decode(b); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: %+v, %v; want %q", len(b), m, err, want)
		}
	}
}

// Losses may be infinite or no numbers: the run says so, not the protocol. Hits are those of the rows at most.
func TestLossesAndHits(t *testing.T) {
	for _, loss := range []float64{0, -1.5, math.Inf(1), math.NaN()} {
		m := Message{Kind: Forward, Flags: HasCorrect, A: 7, B: math.Float64bits(loss)}
		got, correct, err := m.loss(7)
		if err != nil || correct != 7 || math.Float64bits(got) != m.B {
			t.Errorf("%v: %v, %d, %v", loss, got, correct, err)
		}
		if _, _, err := m.loss(6); err == nil {
			t.Error("7 hits of 6 rows are taken")
		}
		m.Flags = 0
		if _, correct, err := m.loss(6); err != nil || correct != 0 {
			t.Errorf("hits that are not counted: %d, %v", correct, err)
		}
	}
}

// Whatever bytes come, decode does not panic, and what it takes is written as the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(make([]byte, 16))
	for k := Hello; k < kinds; k++ {
		f.Add((&Message{Kind: k, Flags: flagsMax[k], A: 1, B: 2}).appendTo(nil))
	}
	f.Add((&Message{Kind: Tensor, B: 12, Text: []byte("fc1\nfc1.weight\n4x3")}).appendTo(nil))
	f.Add((&Message{Kind: Fail, Text: []byte("why")}).appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		if got := m.appendTo(nil); !bytes.Equal(got, b) {
			t.Errorf("% x is read as %+v, which is % x", b, m, got)
		}
		if m.Kind == Tensor {
			var bind binder
			bind.params, bind.layers = map[string]bool{}, map[string]bool{}
			if err := bind.tensor(&m); err == nil && (bind.count != 1 || uint64(bind.list[0].Params[0].N()) != m.B || m.A != 0) {
				t.Errorf("%q is taken as %+v", m.Text, bind.list)
			}
		}
	})
}
