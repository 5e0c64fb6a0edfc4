package dataset

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/text"
)

// sparse is a table in compressed rows: the entries of row r are start[r] to start[r+1]-1.
type sparse struct {
	start []int
	index []int32
	value []float32
	y     []int32
	cols  int

	lowest int32           // while it is read: the smallest index, math.MaxInt32 if there is none
	labels *classes.Labels // of all tables of the set
}

func (t *sparse) Rows() int { return len(t.y) }
func (t *sparse) Cols() int { return t.cols }

func (t *sparse) Fill(x []float32, y []int32, rows []int32) {
	clear(x[:len(rows)*t.cols])
	for i, r := range rows {
		y[i] = t.y[r]
		row := x[i*t.cols : (i+1)*t.cols]
		for e := t.start[r]; e < t.start[r+1]; e++ {
			row[t.index[e]] = t.value[e]
		}
	}
}

func (t *sparse) label(row int) int32 { return t.y[row] }

// featuresMax bounds indices, because rows are filled densely: with so many features a batch of 32 takes 2 GiB.
const featuresMax = 1 << 24

// found is what a LIBSVM file has beside labels and entries, in lines.
type found struct{ comments, queries, unsorted int }

func loadLIBSVM(s Spec, in *files.Reading) (*Set, error) {
	labels := &classes.Labels{}
	train, err := readLIBSVM(s.Path, s, labels, false, in)
	if err != nil {
		return nil, err
	}
	test := &sparse{start: []int{0}, lowest: math.MaxInt32}
	if s.Test != "" {
		if test, err = readLIBSVM(s.Test, s, labels, true, in); err != nil {
			return nil, err
		}
	}
	settleIndices(s, in, train, test)
	var count int
	var names []string
	if !s.Regress.On {
		if count, names, err = labels.Settle(in, s.Path, train.y, test.y, s.Classes); err != nil {
			return nil, err
		}
		if labels.IsText {
			in.Found = append(in.Found, fmt.Sprintf("%s: %d classes: %s", s.Path, len(names), classes.List(names)))
		}
	}
	if s.Split.Test > 0 { // the numbers of classes do not depend on the split
		if err := train.split(s, test, in); err != nil {
			return nil, err
		}
		if !s.Regress.On {
			classes.NoteSplit(in, s.Path, train.y, test.y, names)
		}
	}
	return &Set{Train: train, Test: test, Classes: count, ClassNames: names}, nil
}

func readLIBSVM(path string, s Spec, labels *classes.Labels, isTest bool, in *files.Reading) (t *sparse, err error) {
	err = in.Read(path, files.TextHint, func(src *files.Source) error {
		t, err = parseLIBSVM(src, s, labels, isTest, in)
		return err
	})
	return t, err
}

// parseLIBSVM reads lines of "label index:value ...". Labels and indices are those of the file until settle has seen all files.
func parseLIBSVM(src *files.Source, s Spec, labels *classes.Labels, isTest bool, in *files.Reading) (*sparse, error) {
	lines := text.NewLines(src, in, text.LineMax, "is this a LIBSVM file?")
	t, has := &sparse{start: []int{0}, lowest: math.MaxInt32, labels: labels}, found{}
	var row entries
	for {
		line, err := lines.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		entry, _, comment := strings.Cut(string(line), "#")
		if comment {
			has.comments++
		}
		if strings.TrimSpace(entry) == "" {
			continue
		}
		label, rest := text.FirstWord(entry)
		y, err := rawLabel(label, s, labels, isTest)
		if err != nil {
			return nil, fmt.Errorf("data: %s:%d: %w%s", src.Path, lines.N, err, libsvmHint(entry, len(t.y) == 0))
		}
		if query, after := text.FirstWord(rest); strings.HasPrefix(query, "qid:") {
			has.queries++
			rest = after
		}
		if err := row.parse(rest, s); err != nil {
			return nil, fmt.Errorf("data: %s:%d: %w%s", src.Path, lines.N, err, libsvmHint(entry, len(t.y) == 0))
		}
		sorted, err := row.sort()
		if err != nil {
			return nil, fmt.Errorf("data: %s:%d: %w", src.Path, lines.N, err)
		}
		if !sorted {
			has.unsorted++
		}
		if err := t.add(src, row, in); err != nil {
			return nil, err
		}
		if err := files.Put(in, src, &t.y, y); err != nil {
			return nil, err
		}
	}
	if len(t.y) == 0 {
		return nil, fmt.Errorf("data: %s: no rows", src.Path)
	}
	lines.End(in)
	has.say(src.Path, in)
	return t, nil
}

func (f found) say(path string, in *files.Reading) {
	for _, what := range []struct {
		lines int
		text  string
	}{{f.comments, "with comments, which begin with #"}, {f.queries, "with qid:, which is ignored"},
		{f.unsorted, "with indices that do not ascend, which were sorted"}} {
		if what.lines > 0 {
			in.Found = append(in.Found, fmt.Sprintf("%s: %s %s", path, text.Counted(what.lines, "line"), what.text))
		}
	}
}

// add appends a row, without zeros.
func (t *sparse) add(src *files.Source, row entries, in *files.Reading) error {
	for k, i := range row.index {
		t.cols = max(t.cols, int(i)+1)
		if row.value[k] == 0 {
			continue
		}
		if err := files.Put(in, src, &t.index, i); err != nil {
			return err
		}
		if err := files.Put(in, src, &t.value, row.value[k]); err != nil {
			return err
		}
	}
	if len(row.index) > 0 {
		t.lowest = min(t.lowest, row.index[0])
	}
	return files.Put(in, src, &t.start, len(t.index))
}

// rawLabel is the class of a row as the file has it, or its target.
func rawLabel(label string, s Spec, labels *classes.Labels, isTest bool) (int32, error) {
	if a, b, several := strings.Cut(label, ","); several && text.IsNumber(a) && text.IsNumber(strings.SplitN(b, ",", 2)[0]) {
		return 0, fmt.Errorf("label %s: data with several labels a row (multi-label) are not read; keep one of them", files.Clip(label))
	}
	v, ok := text.Decimal(label)
	if s.Regress.On {
		target, err := text.ParseValue(label, 0)
		if err != nil {
			return 0, fmt.Errorf("target: %w", err)
		}
		return yOf(target), nil
	}
	switch {
	case !ok && (text.IsMissing(label) || strings.ContainsAny(label, ":,;") || !text.IsWord(label)):
		return 0, fmt.Errorf("label %s is not a whole number; number the classes from 0, without gaps", files.Clip(label))
	case !ok:
		if err := cmp.Or(text.CheckUTF8("label", label), labels.Admit(true, label)); err != nil {
			return 0, err
		}
		return labels.Text(label, s.Classes, isTest)
	case v != math.Trunc(v):
		return 0, fmt.Errorf("label %s is not a whole number: classes are; if it is a value to predict, set data.task: "+
			"regress", files.Clip(label))
	case s.Classes > 2 && (v < 0 || v >= float64(s.Classes)):
		return 0, fmt.Errorf("label %s is out of range, must be 0 to %d", plainClip(label), s.Classes-1)
	case math.Abs(v) >= classes.Max:
		return 0, fmt.Errorf("label %s is out of range, must be %d to %d: number the classes from 0, without gaps", plainClip(label),
			1-classes.Max, classes.Max-1)
	}
	return int32(v), labels.Admit(false, label)
}

// plainClip is a label for a message, without quotes; of a long one only the beginning.
func plainClip(label string) string {
	if len(label) > 20 {
		return files.Clip(label)
	}
	return label
}

// settleIndices numbers columns from 0, over both tables. If an index 0 occurs, indices count from 0, unless the spec says otherwise.
func settleIndices(s Spec, in *files.Reading, train, test *sparse) {
	base := int32(1)
	if s.IndexBase == "0" || s.IndexBase != "1" && min(train.lowest, test.lowest) == 0 {
		base = 0
	}
	if base == 0 && s.IndexBase != "0" {
		in.Found = append(in.Found, fmt.Sprintf("%s: an index 0 occurs, so indices count from 0", s.Path))
	}
	cols := s.Features // a part may lack the last features, so the wider one decides
	for _, t := range []*sparse{train, test} {
		if cols = max(cols, t.cols-int(base)); base > 0 {
			for k := range t.index {
				t.index[k] -= base
			}
		}
	}
	train.cols, test.cols = cols, cols
}

// split moves a share of the rows into a table without rows.
func (t *sparse) split(s Spec, test *sparse, in *files.Reading) error {
	if err := in.Take(nil, 8*int64(len(t.y))+int64(s.Split.Test*float64(2*len(t.index)+3*len(t.y)))*valueBytes); err != nil {
		return err
	}
	picked, err := files.TestRows(s.Path, len(t.y), s.Split.Test, s.Split.Seed)
	if err != nil {
		return err
	}
	in.Found = append(in.Found, fmt.Sprintf("%s: %d rows for training, %d for the test", s.Path, len(t.y)-len(picked), len(picked)))
	rows := append(t.start[:0:0], 0)
	to, next := 0, 0
	for r := range t.y {
		index, value := t.index[t.start[r]:t.start[r+1]], t.value[t.start[r]:t.start[r+1]]
		if next < len(picked) && int(picked[next]) == r {
			test.index, test.value = append(test.index, index...), append(test.value, value...)
			test.start = append(test.start, len(test.index))
			next++
			continue
		}
		copy(t.index[to:], index)
		to += copy(t.value[to:], value)
		rows = append(rows, to)
	}
	t.start, t.index, t.value = rows, t.index[:to], t.value[:to]
	t.y, test.y = files.Part(t.y, 1, picked)
	test.cols, test.lowest = t.cols, t.lowest
	return nil
}

// entries are those of one row, with indices of the file.
type entries struct {
	index []int32
	value []float32
}

func (e *entries) parse(line string, s Spec) error {
	least, most := 0, featuresMax
	if s.Features > 0 {
		most = s.Features
	}
	if s.IndexBase == "1" {
		least = 1
	}
	if s.IndexBase == "0" {
		most--
	}
	e.index, e.value = e.index[:0], e.value[:0]
	for field := range strings.FieldsSeq(line) {
		index, value, found := strings.Cut(field, ":")
		n, whole := text.ParseWhole(index)
		if !found || !whole {
			return fmt.Errorf("%s is not index:value", files.Clip(field))
		}
		if n < int64(least) || n > int64(most) {
			return fmt.Errorf("index %d is out of range, must be %d to %d%s", n, least, most, indexHint(n, most))
		}
		v, err := text.ParseValue(value, s.Scale)
		if err != nil {
			return err
		}
		e.index, e.value = append(e.index, int32(n)), append(e.value, v)
	}
	return nil
}

// sort sorts a row by index, and says whether it was sorted.
func (e *entries) sort() (was bool, err error) {
	if was = slices.IsSorted(e.index); !was {
		order := make([]int, len(e.index))
		for k := range order {
			order[k] = k
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(e.index[a], e.index[b]) })
		index, value := slices.Clone(e.index), slices.Clone(e.value)
		for k, from := range order {
			e.index[k], e.value[k] = index[from], value[from]
		}
	}
	for k := 1; k < len(e.index); k++ {
		if e.index[k] == e.index[k-1] {
			return was, fmt.Errorf("index %d occurs twice in a row; remove one of the two", e.index[k])
		}
	}
	return was, nil
}

// indexHint says what to do about an index out of range. Only a caller from Go can have another limit than the format's.
func indexHint(i int64, limit int) string {
	switch {
	case i == 0:
		return "; if indices count from 0, set data.index_base: 0"
	case i < 0:
		return ""
	case limit < featuresMax-1:
		return ", the number of features"
	}
	return "; number the features from 1, without gaps"
}

// libsvmHint does the same for a line of LIBSVM.
func libsvmHint(line string, first bool) string {
	fields := strings.Split(line, ",")
	numbers := len(fields) > 1 && !strings.Contains(line, ":") && !slices.ContainsFunc(fields, func(f string) bool {
		_, number := text.Decimal(strings.TrimSpace(f))
		return !number
	})
	switch {
	case text.IsMatrixMarket(line):
		return text.MatrixMarketHint
	case numbers:
		return "; it looks like csv: set data.set: csv"
	case first && text.IsHeader(strings.FieldsFunc(line, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == ';' })):
		return "; remove the header line"
	}
	return ""
}
