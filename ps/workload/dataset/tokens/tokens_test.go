package tokens

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func written(t interface{ Fatal(...any) }, dir string, typ Type, all []uint32) string {
	var b []byte
	for _, v := range all {
		switch typ {
		case Uint8:
			b = append(b, byte(v))
		case Uint16:
			b = binary.LittleEndian.AppendUint16(b, uint16(v))
		default:
			b = binary.LittleEndian.AppendUint32(b, v)
		}
	}
	path := filepath.Join(dir, "t.bin")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A row is its window and the token behind it, for every type, stride and part of the file, filled and as entries.
func TestRowsAreWindows(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom([]Type{Uint8, Uint16, Uint32}).Draw(t, "type")
		vocabulary := rapid.IntRange(2, 40).Draw(t, "vocabulary")
		all := rapid.SliceOfN(rapid.Uint32Max(uint32(vocabulary-1)), 2, 200).Draw(t, "tokens")
		f, err := Open(written(t, dir, typ, all), typ)
		if err != nil {
			t.Fatal(err)
		}
		if largest, err := f.Largest(Most); err != nil || largest != int(slices.Max(all)) || f.Len() != int64(len(all)) {
			t.Fatalf("%d tokens up to %d, %v", f.Len(), largest, err)
		}
		w := Window{rapid.IntRange(1, 12).Draw(t, "window"), rapid.IntRange(1, 5).Draw(t, "stride")}
		from := rapid.IntRange(0, len(all)-1).Draw(t, "from")
		to := rapid.IntRange(from, len(all)).Draw(t, "to")
		table, err := f.Table(w, vocabulary, int64(from), int64(to))
		var rows [][]uint32
		for at := from; at+w.Length < to; at += w.Stride {
			rows = append(rows, all[at:at+w.Length+1])
		}
		if len(rows) == 0 {
			if err == nil {
				t.Fatal("a part without a row is taken")
			}
			return
		}
		if err != nil || table.Rows() != len(rows) || table.Cols() != w.Length*vocabulary {
			t.Fatalf("%v: %d rows of %d, want %d", err, table.Rows(), table.Cols(), len(rows))
		}
		pick := rapid.SliceOfN(rapid.Int32Range(0, int32(len(rows)-1)), 1, 6).Draw(t, "rows")
		x, y := make([]float32, len(pick)*table.Cols()), make([]int32, len(pick))
		for i := range x {
			x[i] = 7
		}
		table.Fill(x, y, pick)
		var columns []int32
		table.Entries(pick, func(i int, class int32) {
			if class != y[i] {
				t.Fatalf("row %d is of class %d, and of %d as entries", i, y[i], class)
			}
		}, func(i int, column int32) { columns = append(columns, int32(i*table.Cols())+column) })
		for i, r := range pick {
			want := make([]float32, table.Cols())
			for k := range w.Length {
				want[k*vocabulary+int(rows[r][k])] = 1
			}
			got, class := x[i*table.Cols():(i+1)*table.Cols()], int32(rows[r][w.Length])
			if !slices.Equal(got, want) || y[i] != class || table.Label(int(r)) != class {
				t.Fatalf("row %d is %v of class %d, want %v of %d", r, got, y[i], want, rows[r][w.Length])
			}
		}
		for _, c := range columns {
			x[c]--
		}
		if slices.Max(x) != 0 || slices.Min(x) != 0 || !slices.IsSorted(columns) {
			t.Fatalf("entries %v are not the values that are 1", columns)
		}
		bytes := 0
		table.Pages(pick, func(b []byte) { bytes += len(b) })
		if bytes != len(pick)*(w.Length+1)*typ.size() || table.Failure() != nil {
			t.Fatalf("%d bytes have %d rows, %v", bytes, len(pick), table.Failure())
		}
	})
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	fails := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err := Open(written(t, dir, Uint8, []uint32{1, 2, 3}), Uint16)
	fails(err, "has 3 bytes, which are no whole number of tokens of uint16; set data.tokens.type")
	_, err = Open(written(t, dir, Uint8, nil), Uint8)
	fails(err, "is empty")
	f, err := Open(written(t, dir, Uint32, []uint32{5, 1 << 20, 7}), Uint32)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Largest(Most)
	fails(err, "token 1 is 1048576, must be 0 to 1048575; are the tokens stored as uint32 (data.tokens.type)?")
	_, err = f.Table(Window{3, 1}, 8, 0, 3)
	fails(err, "3 tokens, fewer than a window of 3 and the one behind it; lower data.tokens.window")
	small, err := f.Table(Window{1, 1}, 8, 0, 3) // the file was written to since its tokens were counted
	if err != nil {
		t.Fatal(err)
	}
	small.Fill(make([]float32, 8), make([]int32, 1), []int32{1})
	fails(small.Failure(), "token 1 is 1048576, and there are 8 different ones, from 0; leave out data.tokens.vocabulary")
	long := written(t, dir, Uint16, make([]uint32, 1<<16))
	if f, err = Open(long, Uint16); err != nil {
		t.Fatal(err)
	}
	cut, err := f.Table(Window{1, 1}, 8, 0, 1<<16)
	if err == nil {
		err = os.Truncate(long, 4096)
	}
	if err != nil {
		t.Fatal(err)
	}
	cut.Fill(make([]float32, 8), make([]int32, 1), []int32{1<<16 - 3})
	fails(cut.Failure(), "a page of the file cannot be read any more")
}
