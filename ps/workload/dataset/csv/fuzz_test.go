package csv

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fluentps/ps/workload/dataset/files"
)

// readBytes reads the bytes of a training file, which may be compressed.
func readBytes(t testing.TB, b []byte, o Options) (train, test *Table, found Found, err error) {
	t.Helper()
	in := files.New(4 << 20)
	src, err := files.NewSource("f", io.NopCloser(bytes.NewReader(b)), int64(len(b)))
	if err != nil {
		t.Skip(err)
	}
	r := &reader{Options: &o, in: in}
	train, test = &Table{}, &Table{}
	if err := r.file(src, train); err != nil {
		return nil, nil, found, err
	}
	found, err = r.settle("f", train, test)
	return train, test, found, err
}

// checkAll reads every row of a table that was accepted: all values are finite, and the classes in range.
func checkAll(t *testing.T, table *Table, classes int) {
	t.Helper()
	x, y := make([]float32, table.Cols()), make([]int32, 1)
	for r := range table.Rows() {
		table.Fill(x, y, []int32{int32(r)})
		for i, v := range x {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Fatalf("row %d value %d is %g", r, i, v)
			}
		}
		if y[0] < 0 || int(y[0]) >= classes {
			t.Fatalf("row %d has label %d of %d classes", r, y[0], classes)
		}
	}
}

func FuzzCSV(f *testing.F) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte("1,2,0\n3,4,1\n"))
	_ = w.Close()
	f.Add([]byte("1,2,0\n3,4,1\n"), "last", "", "", 0)
	f.Add([]byte("1,2,0\r\n\"3\",4,1\r5,6,0"), "first", "", "", 3)
	f.Add(packed.Bytes(), "last", "", "", 0)
	f.Add([]byte("a;b;\"c \"\"d\"\"\"\n# x\n1;2;\"x;y\"\n3;4;z\n"), "last", "", "b", 0)
	f.Add([]byte("a;b;c\n1,5;;x\n3,25;4;y\n"), "c", "mean", "a", 0)
	f.Fuzz(func(t *testing.T, b []byte, label, missing, onehot string, most int) {
		o := Options{Label: label, Missing: missing, Classes: max(0, most)}
		if onehot != "" {
			o.Columns = KindsOf([]string{onehot, Others}, []string{string(OneHot), string(Standardize)})
		}
		train, _, found, err := readBytes(t, b, o)
		if err == nil {
			checkAll(t, train, found.Classes)
		}
	})
}

// No bytes make the reader panic, or accept what is no number.
func TestMutatedFiles(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	for _, text := range []string{"a;b;\"c\"\n# x\n1;2;\"x;\"\"y\"\n3;4;z\n", "1,2,0\r\n3,4,1\r\n", "a\tb\tc\n1\t2\tq\n",
		"x,y,z\n1.5,NA,\"no\nyes\"\n-2e3,4,q\n", "1 2  0\n 3 4 1 \n"} {
		for range 2000 {
			b := []byte(text)
			for range 1 + draw.IntN(4) {
				at := draw.IntN(len(b))
				switch draw.IntN(3) {
				case 0:
					b[at] = ",;\t|\"\n\r#1ax\xff"[draw.IntN(12)]
				case 1:
					b = slices.Insert(b, at, byte(",;\t|\"\n\r#1ax\xff"[draw.IntN(12)]))
				default:
					b = slices.Delete(b, at, at+1)
				}
			}
			for _, o := range []Options{{}, {Missing: MissingMean, Split: 0.5}, {Columns: KindsOf([]string{"1"}, []string{string(OneHot)})}} {
				train, test, found, err := readBytes(t, b, o)
				if err == nil {
					checkAll(t, train, found.Classes)
					checkAll(t, test, found.Classes)
				} else if !strings.HasPrefix(err.Error(), "data: ") {
					t.Fatalf("%q: %v", b, err)
				}
			}
		}
	}
}
