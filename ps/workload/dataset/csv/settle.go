package csv

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/text"
)

// Column describes a column of the files.
type Column struct {
	Name    string // "": the files have no header
	Kind    string // number, standardize, onehot, class, target, group, or dropped
	Texts   []string
	Missing int // values of both parts
	// Of the training rows, as the files have them, divided by Options.Scale: of numbers that are not missing.
	Min, Max, Mean, Deviation float64
}

// namesMost is the most columns that Names lists.
const namesMost = 4096

// Names are those of the columns of the model, as city=Rome of a column of texts, and 3 of a column without a name. There are none if they
// are too many to be read.
func Names(columns []Column) (names []string) {
	for i, c := range columns {
		name := c.Name
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		switch Kind(c.Kind) {
		case Number, Standardize:
			names = append(names, name)
		case OneHot:
			for _, text := range c.Texts {
				names = append(names, name+"="+text)
			}
		}
		if len(names) > namesMost {
			return nil
		}
	}
	return names
}

// Input says how columns of the model follow from one of the files: a number as it is, a number less Mean and divided by Deviation, or 1
// for one of the texts and 0 for the others. A missing number is the mean, a missing text 0 in all columns.
type Input struct {
	Name      string   `json:"name"`
	Kind      Kind     `json:"kind"`
	Mean      float64  `json:"mean,omitempty"`
	Deviation float64  `json:"deviation,omitempty"`
	Texts     []string `json:"texts,omitempty"`
}

// Inputs are what a program needs to know to make the rows of the model, in their order. There are none if the columns are too many.
func Inputs(columns []Column) (all []Input) {
	if len(Names(columns)) == 0 {
		return nil
	}
	for i, c := range columns {
		in := Input{Name: c.Name, Kind: Kind(c.Kind), Mean: c.Mean, Deviation: c.Deviation, Texts: c.Texts}
		if in.Name == "" {
			in.Name = strconv.Itoa(i + 1)
		}
		switch in.Kind {
		case Number:
			in.Deviation = 0
		case Standardize, OneHot:
		default:
			continue
		}
		all = append(all, in)
	}
	return all
}

// Describe adds to columns what the numbers of a table are like, where nobody has counted them before.
func (t *Table) Describe(columns []Column) {
	wide := make([]int, t.kept)
	for k := range wide {
		wide[k] = -1
	}
	if len(t.y) == 0 {
		return
	}
	all, k := t.moments(wide), 0
	for i := range columns {
		c := &columns[i]
		switch Kind(c.Kind) {
		case Number:
			if m := all[k]; c.Min == 0 && c.Max == 0 {
				c.Min, c.Max, c.Mean, c.Deviation = m.min, m.max, m.mean, m.dev
			}
			k++
		case Standardize, OneHot:
			k++
		}
	}
}

// settleColumns makes the numbers of the tables those of the model. Whatever it counts is of the training rows alone.
func (r *reader) settleColumns(path string, train, test *Table) ([]Column, error) {
	s := r.scheme
	columns := make([]Column, len(s.ops))
	places := make([]slot, 0, s.kept)
	cols, texts := 0, 0
	for _, t := range []*Table{train, test} {
		t.kept, t.wideCols = s.kept, len(s.wide)
	}
	for i, op := range s.ops {
		c := &columns[i]
		if s.names != nil {
			c.Name = s.names[i]
		}
		switch op {
		case opLabel:
			c.Kind = "class"
			continue
		case opTarget:
			c.Kind = "target"
			continue
		case opSkip:
			c.Kind = "dropped"
			continue
		case opGroup:
			c.Kind = "group"
			r.settleGroups(&s.texts[texts], train, test)
			texts++
			continue
		case opText:
			c.Kind = string(OneHot)
			r.settleTexts(path, &s.texts[texts], train, test, c)
			if len(c.Texts) == 0 {
				return nil, fmt.Errorf("data: %s: column %s has no text in any training row: leave it out by data.drop: [%s]", path, s.name(i),
					s.name(i))
			}
			places = append(places, slot{cols, true})
			cols += len(c.Texts)
			texts++
		case opWide, opNumber:
			if c.Kind = string(Number); op == opWide {
				c.Kind = string(Standardize)
			}
			places = append(places, slot{from: cols})
			cols++
		}
	}
	if err := r.settleNumbers(path, train, test, columns); err != nil {
		return nil, err
	}
	if cols == 0 {
		return nil, fmt.Errorf("data: %s: no column is left beside the %s", path, r.labelWord())
	}
	if cols > colsMax {
		return nil, fmt.Errorf("data: %s: the columns of texts make %d columns for the model, at most %d: drop some by data.drop", path, cols,
			colsMax)
	}
	for _, t := range []*Table{train, test} {
		if t.cols, t.wide, t.wideCols = cols, nil, 0; cols != len(places) || slices.Contains(s.ops, opText) {
			t.places = places
		}
	}
	r.in.Give(8 * int64(len(s.wide)) * int64(train.Rows()+test.Rows()))
	return columns, nil
}

// colsMax bounds the columns of a model, because rows are filled densely.
const colsMax = 1 << 24

// settleTexts numbers the texts of the training rows in their order. Those of numbers are in the order of the numbers.
func (r *reader) settleTexts(path string, column *textColumn, train, test *Table, c *Column) {
	in := make([]bool, len(column.Names))
	for at := column.at; at < len(train.x); at += train.kept {
		if v := train.x[at]; v >= 0 {
			in[int(v)] = true
		}
	}
	old := slices.Clone(column.Names)
	for i, name := range old {
		if in[i] {
			c.Texts = append(c.Texts, name)
		}
	}
	numbers := !slices.ContainsFunc(c.Texts, func(name string) bool { return !text.IsNumber(name) })
	slices.SortFunc(c.Texts, func(a, b string) int {
		if numbers {
			x, _ := text.Decimal(a)
			y, _ := text.Decimal(b)
			return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
		}
		return strings.Compare(a, b)
	})
	place := map[string]float32{}
	for i, name := range c.Texts {
		place[name] = float32(i)
	}
	unknown := 0
	for _, t := range []*Table{train, test} {
		for at := column.at; at < len(t.x); at += t.kept {
			v := t.x[at]
			if v < 0 {
				c.Missing++
				continue
			}
			now, ok := place[old[int(v)]]
			if !ok {
				now = -1
				unknown++
			}
			t.x[at] = now
		}
	}
	if unknown > 0 {
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("data: %s: column %s has texts in %d test rows that no training row has: all of its columns "+
			"are 0 there", path, r.scheme.name(column.column), unknown))
	}
	if len(c.Texts) > 0 && len(c.Texts)*2 > train.Rows() && train.Rows() >= rowsToJudge {
		r.in.Notes = append(r.in.Notes, fmt.Sprintf("data: %s: column %s has %d different texts in %d training rows: is it a name? leave it out "+
			"by data.drop: [%s]", path, r.scheme.name(column.column), len(c.Texts), train.Rows(), r.scheme.name(column.column)))
	}
}

// settleGroups numbers groups in the order of their texts, which does not depend on that of rows.
func (r *reader) settleGroups(column *textColumn, train, test *Table) {
	number := column.Sort(strings.Compare)
	for _, t := range []*Table{train, test} {
		for i, g := range t.group {
			t.group[i] = number[g]
		}
	}
}

// moments describe the numbers of a kept column that are not missing.
type moments struct {
	n                   int
	min, max, mean, dev float64
	sum, squares        float64
}

// numbersOf puts the numbers of a row into to, each in float64 if it is so in memory. wide is the place of each kept column among those,
// -1: it is in float32.
func (t *Table) numbersOf(row int, wide []int, to []float64) {
	x := t.x[row*t.kept : (row+1)*t.kept]
	rowWide := t.wide[row*t.wideCols : (row+1)*t.wideCols]
	for k, v := range x {
		if to[k] = float64(v); wide[k] >= 0 {
			to[k] = rowWide[wide[k]]
		}
	}
}

// moments describes the numbers of each kept column; wide is as for numbersOf.
func (t *Table) moments(wide []int) []moments {
	all, numbers := make([]moments, t.kept), make([]float64, t.kept)
	for k := range all {
		all[k].min, all[k].max = math.Inf(1), math.Inf(-1)
	}
	for row := range t.y {
		t.numbersOf(row, wide, numbers)
		for k, v := range numbers {
			if m := &all[k]; v == v {
				m.n++
				m.min, m.max, m.sum = min(m.min, v), max(m.max, v), m.sum+v
			}
		}
	}
	for k := range all {
		all[k].mean = all[k].sum / float64(all[k].n)
	}
	for row := range t.y {
		t.numbersOf(row, wide, numbers)
		for k, v := range numbers {
			if m := &all[k]; v == v {
				m.squares += (v - m.mean) * (v - m.mean)
			}
		}
	}
	for k := range all {
		all[k].dev = math.Sqrt(all[k].squares / float64(all[k].n))
	}
	return all
}

// settleNumbers fills in missing numbers, and standardizes. columns has the place of each kept column in the files.
func (r *reader) settleNumbers(path string, train, test *Table, columns []Column) error {
	if len(r.scheme.wide) == 0 && r.missing == 0 {
		return nil
	}
	var at, wide []int // by kept column
	for i, op := range r.scheme.ops {
		if op <= opText {
			at, wide = append(at, i), append(wide, slices.Index(r.scheme.wide, i))
		}
	}
	all := train.moments(wide)
	for k, m := range all {
		i := at[k]
		if r.scheme.ops[i] == opText {
			continue
		}
		c := &columns[i]
		if c.Min, c.Max, c.Mean, c.Deviation = m.min, m.max, m.mean, m.dev; m.n == 0 {
			return fmt.Errorf("data: %s: column %s has no value in any training row: leave it out by data.drop: [%s]", path, r.scheme.name(i),
				r.scheme.name(i))
		}
		if wide[k] >= 0 && m.min == m.max {
			r.in.Notes = append(r.in.Notes, fmt.Sprintf("data: %s: column %s is %g in all training rows: standardized, it is 0", path,
				r.scheme.name(i), m.min))
		}
	}
	numbers := make([]float64, train.kept)
	for _, t := range []*Table{train, test} {
		for row := range t.y {
			t.numbersOf(row, wide, numbers)
			for k, v := range numbers {
				m, to := &all[k], &t.x[row*t.kept+k]
				switch isMissing := v != v; {
				case isMissing && wide[k] >= 0:
					*to = 0
				case isMissing:
					*to = float32(m.mean)
				case wide[k] >= 0 && m.min == m.max:
					*to = float32(v - m.mean)
				case wide[k] >= 0:
					*to = float32((v - m.mean) / m.dev)
				}
				if v != v {
					columns[at[k]].Missing++
				}
			}
		}
	}
	return nil
}

// rowsToJudge is the fewest rows from which on the values of a column say what it may be.
const rowsToJudge = 20
