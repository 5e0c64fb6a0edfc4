package payload

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The bytes of rows: a count, then the index and the elements of each row that is not all zeros.
func TestLayoutOfRows(t *testing.T) {
	c := NewRows(2, 1)
	src := []float32{1, 0, 0, 0, -2.5, float32(math.Copysign(0, -1))} // rows: 1 | 0 0 | 0 -2.5 | -0
	dst := make([]byte, c.EncodedMax(len(src)))
	n := c.Encode(dst, src, nil)
	if got, want := hex.EncodeToString(dst[:n]), "03000000"+"00000000"+"0000803f"+"02000000"+"00000000"+"000020c0"+
		"03000000"+"00000080"; got != want {
		t.Errorf("bytes %s, want %s", got, want)
	}
}

// Decode refuses damaged bytes, or they are the bytes that Encode writes of the decoded vector, where no row is all
// zeros.
func TestRowsRefuseDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 4).Draw(t, "width")
		c := NewRows(width, rapid.IntRange(0, width-1).Draw(t, "cut"))
		src := rapid.SliceOfN(rapid.SampledFrom([]float32{0, 0, 0, 1, -1, 0.5}), 0, 20).Draw(t, "src")
		buf := make([]byte, c.EncodedMax(len(src)))
		buf = buf[:c.Encode(buf, src, nil)]
		switch rapid.IntRange(0, 3).Draw(t, "damage") {
		case 1:
			buf = buf[:rapid.IntRange(0, len(buf)-1).Draw(t, "end")]
		case 2:
			buf = append(buf, rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "more")...)
		case 3:
			buf[rapid.IntRange(0, len(buf)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		dst := make([]float32, len(src))
		if err := c.Decode(dst, buf); err != nil {
			if !strings.HasPrefix(err.Error(), "payload: ") {
				t.Fatalf("error %q", err)
			}
			return
		}
		again := make([]byte, c.EncodedMax(len(src)))
		again = again[:c.Encode(again, dst, nil)]
		if len(again) == len(buf) && !bytes.Equal(again, buf) {
			t.Fatalf("%x became %v, which is %x", buf, dst, again)
		}
	})
}
