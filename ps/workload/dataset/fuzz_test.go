package dataset

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/datasettest"
)

func FuzzLIBSVM(f *testing.F) {
	f.Add([]byte("-1 1:2 3:4\n+1 2:1\n"), 0)
	f.Add([]byte("0 1:2 1:4\r\r\n2"), 3)
	f.Fuzz(func(t *testing.T, b []byte, most int) {
		s := Spec{Classes: max(0, most), Features: 1000}
		src, in := datasettest.Source(t, b)
		table, err := parseLIBSVM(src, s, &classes.Labels{}, false, in)
		if err != nil {
			return
		}
		none := &sparse{start: []int{0}, lowest: math.MaxInt32}
		settleIndices(s, in, table, none)
		if n, _, err := table.labels.Settle(in, "f", table.y, none.y, s.Classes); err == nil {
			fillAll(t, table, n)
		}
	})
}

// FuzzRatings: accepted ratings lie in the matrix, and come from lines without empty fields.
func FuzzRatings(f *testing.F) {
	f.Add([]byte("3,1,4.5\n0,2,-1,881250949\n3,0,2.5\n"))
	f.Add([]byte("1,2,3,\"2005-04-02 23:53:47\"\r1,2,3,2005-09-06T07:00:00Z"))
	f.Add([]byte("1::1193::5::978300760\n"))
	f.Add([]byte("196\t242\t3\t881250949\n186\t\t3\t891717742\n"))
	f.Add([]byte(" 1  2 3 2005-09-06 7:00\n4 5 6\n"))
	f.Add([]byte("0;0;4,5\n1;;3;978301968\n"))
	f.Add([]byte("user,item,rating\nann,\"a, b\",3\n7,x,4\n"))
	f.Add([]byte("%%MatrixMarket matrix coordinate real general\n% x\n3 2 2\n1 2 0.5\n3 1 4\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		src, in := datasettest.Source(t, b)
		r := &ratingsReader{in: in, ids: [2]identifiers{{what: "row"}, {what: "column", field: 1}}}
		table := &rowsTable{cols: RatingCols}
		r.tables = append(r.tables, table)
		err := r.parse(src, table)
		matrix := r.matrix
		if err != nil {
			return
		}
		if names := r.ids[0].settle("f", in, table); names != nil {
			matrix.Rows = len(names)
		}
		if names := r.ids[1].settle("f", in, table); names != nil {
			matrix.Columns = len(names)
		}
		for i := range table.Rows() {
			x, _ := rowsOf(table, int32(i))
			if row, column := int(x[0]), int(x[1]); row >= matrix.Rows || column >= matrix.Columns || row < 0 || column < 0 || x[2] != x[2] {
				t.Fatalf("rating %v of a matrix of %+v", x, matrix)
			}
		}
		for _, empty := range []string{",,", ";;", "::::"} {
			if !src.Packed() && !strings.Contains(string(b), `"`) && !strings.HasPrefix(string(b), "%") && bytes.Contains(b, []byte(empty)) {
				t.Fatalf("%q was accepted with an empty field", b)
			}
		}
	})
}
