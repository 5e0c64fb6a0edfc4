package dataset

import (
	"path/filepath"
	"slices"
	"testing"
)

// The entries of a batch equal its rows of numbers, for every table, and also if the batch is reused.
func TestBatchTakesTheEntriesOfRows(t *testing.T) {
	dir := write(t, map[string]string{"a": "-1 1:2 4:0.5 \n+1 2:1 3:0\n\n-1\n+1 1:1 2:2 3:3 4:4\n",
		"b": "2,0,0,0.5,0\n0,1,0,0,1\n0,0,0,0,0\n1,2,3,4,1\n"})
	for _, s := range []Spec{
		{Set: "libsvm", Path: filepath.Join(dir, "a")},
		{Set: "libsvm", Path: filepath.Join(dir, "a"), Rows: 3},
		{Set: "csv", Path: filepath.Join(dir, "b")},
	} {
		set, err := Load(s)
		if err != nil {
			t.Fatal(err)
		}
		b := NewBatch(true, set.Samples(), 3)
		for _, rows := range [][]int32{{2, 0, 1}, {1}, {}, {0, 0}} {
			b.Take(set.Train, rows)
			x, y := rowsOf(set.Train, rows...)
			got := make([]float32, len(x))
			for i := range rows {
				for k := b.Entries.Start[i]; k < b.Entries.Start[i+1]; k++ {
					if b.Entries.Value[k] == 0 {
						t.Errorf("%s rows %v: entry %d is 0", s.Set, rows, k)
					}
					got[i*b.Cols+int(b.Entries.Index[k])] = b.Entries.Value[k]
				}
			}
			if b.N != len(rows) || !slices.Equal(b.Y, y) || !slices.Equal(got, x) {
				t.Errorf("%s rows %v: %d with labels %v and values %v, want %d, %v and %v", s.Set, rows, b.N, b.Y, got, len(rows), y, x)
			}
		}
	}
}
