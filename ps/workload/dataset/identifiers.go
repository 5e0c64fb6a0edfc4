package dataset

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// identifiers number the rows or the columns of a matrix of ratings. While all are whole numbers below matrixMax, they are their own
// numbers. As soon as one is a text or a larger number, all are numbered: numbers in the order of their values, and texts in their order.
type identifiers struct {
	what   string // row or column
	field  int    // of a rating
	isText bool
	known  *classes.Dictionary // nil: they are their own numbers
}

// number is the number of an identifier, which may change until settle. tables have the ratings so far.
func (d *identifiers) number(field string, tables []*rowsTable, src *files.Source, in *files.Reading) (int, error) {
	n, whole := text.ParseWhole(field)
	switch _, number := text.Decimal(field); {
	case whole && n >= 0 && n < matrixMax && d.known == nil:
		return int(n), nil
	case whole && n < 0:
		return 0, fmt.Errorf("%s %d is out of range, must be 0 to %d; number rows and columns from 0, without gaps", d.what, n, matrixMax-1)
	case !whole && number && !text.Digits(field):
		return 0, fmt.Errorf("%s %s is not a whole number", d.what, files.Clip(field))
	case !whole && (text.IsMissing(field) || strings.Contains(field, "::")):
		return 0, fmt.Errorf("%s %s names nothing", d.what, files.Clip(field))
	}
	if err := text.CheckUTF8(d.what, field); err != nil {
		return 0, err
	}
	if d.known == nil {
		d.known = &classes.Dictionary{}
		for _, t := range tables {
			for at := d.field; at < len(t.x); at += RatingCols {
				number, err := d.add(strconv.Itoa(int(t.x[at])), src, in)
				if err != nil {
					return 0, err
				}
				t.x[at] = float32(number)
			}
		}
	}
	if whole { // 007 is 7
		field = strconv.FormatInt(n, 10)
	}
	d.isText = d.isText || !whole
	return d.add(field, src, in)
}

func (d *identifiers) add(name string, src *files.Source, in *files.Reading) (int, error) {
	number, isNew := d.known.Add(name)
	if !isNew {
		return int(number), nil
	}
	if number >= matrixMax {
		return 0, fmt.Errorf("%s %s is one more than the limit, %d", d.what, files.Clip(name), matrixMax)
	}
	return int(number), in.Take(src, int64(len(name))+128)
}

// settle numbers the identifiers of all tables in their order, and says so. It returns them in that order; nil: they are their own numbers.
func (d *identifiers) settle(path string, in *files.Reading, tables ...*rowsTable) []string {
	if d.known == nil {
		return nil
	}
	number := d.known.Sort(func(a, b string) int {
		if d.isText {
			return strings.Compare(a, b)
		}
		x, _ := strconv.ParseInt(a, 10, 64)
		y, _ := strconv.ParseInt(b, 10, 64)
		return cmp.Compare(x, y)
	})
	for _, t := range tables {
		for at := d.field; at < len(t.x); at += RatingCols {
			t.x[at] = float32(number[int(t.x[at])])
		}
	}
	in.Found = append(in.Found, fmt.Sprintf("%s: %d different %ss are numbered in their order: %s", path, len(number), d.what,
		classes.List(d.known.Names)))
	return d.known.Names
}

// market is the head of a file of MatrixMarket.
type market struct {
	isHead  bool // the line of sizes is still to come
	matrix  Matrix
	entries int
}

// marketOf reads the first line of such a file. It fails if the entries are no ratings.
func marketOf(line string) (*market, error) {
	words := strings.Fields(strings.ToLower(line))
	refuse := func(why string) (*market, error) {
		return nil, fmt.Errorf("the head of MatrixMarket says %s: %s; scipy.io.mmwrite(FILE, scipy.sparse.coo_matrix(m), field=\"real\", "+
			"symmetry=\"general\") writes what is read", files.Clip(line), why)
	}
	switch {
	case len(words) != 5 || words[0] != "%%matrixmarket" || words[1] != "matrix":
		return refuse("it is not that of a matrix")
	case words[2] != "coordinate":
		return refuse("the matrix has all entries (array), and ratings are some (coordinate)")
	case words[3] != "real" && words[3] != "integer":
		return refuse("entries have no value, or more than one (" + words[3] + ")")
	case words[4] != "general":
		return refuse("half of the entries are not in the file (" + words[4] + ")")
	}
	return &market{isHead: true}, nil
}

// line reads a line. ok is false for a comment and for the line of sizes, which is checked.
func (m *market) line(line string) (row, column int, value float32, ok bool, err error) {
	if strings.HasPrefix(line, "%") {
		return 0, 0, 0, false, nil
	}
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return 0, 0, 0, false, fmt.Errorf("%d values, want 3: row, column and value, or the sizes of the matrix", len(fields))
	}
	var n [3]int64
	for i, what := range []string{"row", "column", "number of entries"} {
		var whole bool
		if n[i], whole = text.ParseWhole(fields[i]); i < 2 || m.isHead {
			most := int64(matrixMax)
			if i == 2 {
				most = math.MaxInt32
			} else if !m.isHead {
				most = int64([]int{m.matrix.Rows, m.matrix.Columns}[i])
			}
			if !whole || n[i] < 1 || n[i] > most {
				return 0, 0, 0, false, fmt.Errorf("%s %s must be a whole number from 1 to %d", what, files.Clip(fields[i]), most)
			}
		}
	}
	if m.isHead {
		m.isHead, m.matrix, m.entries = false, Matrix{int(n[0]), int(n[1])}, int(n[2])
		return 0, 0, 0, false, nil
	}
	value, err = text.ParseValue(fields[2], 0)
	return int(n[0]) - 1, int(n[1]) - 1, value, err == nil, err
}
