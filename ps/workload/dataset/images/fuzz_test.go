package images

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"testing"

	"fluentps/ps/workload/dataset/datasettest"
)

// packed is the same in gzip.
func packed(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// idxOf is a file of IDX.
func idxOf(magic uint32, dims []uint32, values ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, magic)
	for _, d := range dims {
		b = binary.BigEndian.AppendUint32(b, d)
	}
	return append(b, values...)
}

func FuzzIDX(f *testing.F) {
	good := idxOf(idxImages, []uint32{2, 1, 2}, 1, 2, 3, 4)
	f.Add(good)
	f.Add(packed(good))
	f.Add(idxOf(idxImages, []uint32{1 << 31, 1 << 31, 1 << 31}, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		src, in := datasettest.Source(t, b)
		values, dims, err := parseIDX("f", src, idxImages, in)
		if err == nil && len(values) != dims[0]*dims[1]*dims[2] {
			t.Errorf("%d values for dimensions %v", len(values), dims)
		}
	})
}

func FuzzCIFAR10(f *testing.F) {
	record := func(label byte) []byte { return append([]byte{label}, bytes.Repeat([]byte{7}, cifarPixels)...) }
	f.Add(record(3))
	f.Add(packed(record(3)))
	f.Add(record(11))
	f.Fuzz(func(t *testing.T, b []byte) {
		src, in := datasettest.Source(t, b)
		c := newCIFAR()
		if err := c.parse("f", src, in); err != nil {
			return
		}
		x, y := make([]float32, c.Cols()), make([]int32, 1)
		for r := range c.Rows() {
			if c.Fill(x, y, []int32{int32(r)}); y[0] < 0 || y[0] >= cifarClasses {
				t.Fatalf("row %d has class %d", r, y[0])
			}
		}
	})
}
