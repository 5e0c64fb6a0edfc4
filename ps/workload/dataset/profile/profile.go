// Package profile looks at the rows of a data set as a person would before training: how their values are spread, what each column tells
// alone, whether test rows are training rows too, and what pictures look like.
//
//	p, err := profile.Of(set, profile.Options{})
//
// Of a large set it takes a row in each of as many equal parts. It changes nothing, and the same set has the same profile.
package profile

import (
	"hash/maphash"
	"image"
	"maps"
	"math"
	"slices"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/csv"
	"fluentps/ps/workload/dataset/draw"
	"fluentps/ps/workload/dataset/images"
)

// Options say what is looked at.
type Options struct {
	Rows    int            // the most rows of each part; 0: 20,000. Wide rows are fewer
	Sheets  bool           // contact sheets of pictures are painted
	Augment images.Augment // how training pictures are changed
	Seed    uint64         // of the run, which fixes the changes
}

const (
	rowsMost = 20_000
	// valuesMost bounds the values of the rows that are looked at, 4 bytes each.
	valuesMost = 1 << 24
	// wideMost is the most columns of rows that are neither pictures nor ratings, if they are looked at one by one.
	wideMost = 1 << 16
)

// Looked counts rows: so many were looked at, of all.
type Looked struct{ Rows, All int }

// Profile is what was seen. Values are as the files have them where the set knows how it changed them.
type Profile struct {
	Train, Test Looked
	Columns     []Column    // of rows that are neither pictures nor ratings; the most telling ones if there are many
	Left        int         // so many columns are not in Columns
	Outcome     *Histogram  // of targets or of the values of ratings; nil: rows have classes
	PerRow      *Histogram  // of ratings: how many a row of the matrix has, over the rows that have some
	PerColumn   *Histogram  // the same of its columns
	Shades      []Histogram // of the values of pictures, by channel, as the model gets them
	Sheets      []Sheet
	Repeated    int // of the test rows looked at, so many have the values of a training row looked at
}

// Column is a column of the files, or of a row if the files have none.
type Column struct {
	Name  string
	Texts []Text    // of texts: those of the training rows, with their shares; nil: numbers
	Shown Histogram // of numbers
	// Alone is how good a guess from this column alone is: its accuracy, or its R2 if rows have targets. The guess is learned from about
	// half of the rows looked at and tried on the rest. NaN: too few rows.
	Alone    float64
	Constant bool
	Rises    bool // its values rise from each row looked at to the next, as numbers of rows do
}

// Text is a text of a column with its shares of the rows looked at.
type Text struct {
	Name        string
	Train, Test float64
}

// Sheet is a contact sheet.
type Sheet struct {
	ID, Title, Note string
	Strips          []Strip
}

// Strip is a row of Count pictures side by side, as one picture.
type Strip struct {
	Label   string
	Count   int
	Picture image.Image
}

// part is the rows looked at of a table.
type part struct {
	cols   int
	x      []float32 // rows x cols
	y      []int32   // classes
	target []float64 // targets or ratings, as the files have them
	rows   int
}

// Of looks at a set.
func Of(set *dataset.Set, o Options) (*Profile, error) {
	p := &Profile{}
	isWide := set.Image == dataset.Image{} && set.Train.Cols() > wideMost
	if isWide {
		p.Left = set.Train.Cols()
	}
	if set.Elsewhere || isWide {
		return p, nil
	}
	train, err := look(set, set.Train, o, &p.Train)
	if err != nil {
		return nil, err
	}
	test, err := look(set, set.Test, o, &p.Test)
	if err != nil {
		return nil, err
	}
	if train.target != nil {
		h := histogram(train.target, test.target)
		p.Outcome = &h
	}
	p.Repeated = repeated(set, train, test)
	switch {
	case set.Matrix != dataset.Matrix{}:
		p.ratings(train)
	case set.Image != dataset.Image{}:
		p.pictures(set, o, train)
	default:
		p.columns(set, train, test)
	}
	return p, nil
}

// look gathers a row of each of as many equal parts of the table. Which one is drawn: rows at equal distances could all be of one class of
// a file with an order.
func look(set *dataset.Set, t dataset.Table, o Options, looked *Looked) (*part, error) {
	most := o.Rows
	if most == 0 {
		most = rowsMost
	}
	all, cols := t.Rows(), set.Train.Cols()
	n := min(all, most, max(1, valuesMost/max(1, cols)))
	*looked = Looked{n, all}
	p := &part{cols: cols, rows: n}
	if n == 0 {
		return p, nil
	}
	p.x = make([]float32, 0, n*cols)
	const atOnce = 64
	batch, rows := dataset.NewBatch(false, set.Samples(), min(n, atOnce)), make([]int32, 0, atOnce)
	for i := range n {
		from, to := int64(i)*int64(all)/int64(n), int64(i+1)*int64(all)/int64(n)
		if rows = append(rows, int32(from+int64(draw.Mix(learnSeed+1, uint64(i))%uint64(to-from)))); len(rows) < cap(batch.Y) && i < n-1 {
			continue
		}
		if err := batch.Take(t, rows); err != nil {
			return nil, err
		}
		p.x = append(p.x, batch.X...)
		switch {
		case set.Matrix != dataset.Matrix{}:
			for k := range rows {
				p.target = append(p.target, float64(batch.X[(k+1)*cols-1]))
			}
		case batch.Targets != nil:
			for _, v := range batch.Targets {
				p.target = append(p.target, set.Targets.Mean+set.Targets.Deviation*float64(v))
			}
		default:
			p.y = append(p.y, batch.Y...)
		}
		rows = rows[:0]
	}
	return p, nil
}

// row are the values of a row.
func (p *part) row(r int) []float32 { return p.x[r*p.cols : (r+1)*p.cols] }

// repeated counts test rows whose values a training row has, too. Of ratings, the values are the place in the matrix.
func repeated(set *dataset.Set, train, test *part) (n int) {
	seed, there := maphash.MakeSeed(), make(map[uint64]struct{}, train.rows)
	of := func(row []float32) uint64 {
		if set.Matrix != (dataset.Matrix{}) {
			row = row[:len(row)-1]
		}
		var h maphash.Hash
		h.SetSeed(seed)
		for _, v := range row {
			maphash.WriteComparable(&h, v+0) // -0 is 0
		}
		return h.Sum64()
	}
	if test.rows == 0 {
		return 0
	}
	for r := range train.rows {
		there[of(train.row(r))] = struct{}{}
	}
	for r := range test.rows {
		if _, ok := there[of(test.row(r))]; ok {
			n++
		}
	}
	return n
}

// ratings counts how many known entries the rows and the columns of the matrix have.
func (p *Profile) ratings(train *part) {
	for at, to := range []**Histogram{&p.PerRow, &p.PerColumn} {
		each := map[float32]float64{}
		for r := range train.rows {
			each[train.row(r)[at]]++
		}
		h := histogram(slices.Collect(maps.Values(each)), nil)
		*to = &h
	}
}

// fileColumn is a column of the files: columns from to to-1 of the rows. scale and shift make a value of the file of one of the rows.
type fileColumn struct {
	name         string
	from, to     int
	texts        []string
	scale, shift float64
}

// fileColumns are those of a set. Without columns of csv, those of a row are numbered from 0.
func fileColumns(set *dataset.Set, name func(i int) string) (all []fileColumn) {
	if len(set.Columns) == 0 {
		for i := range set.Train.Cols() {
			all = append(all, fileColumn{name: name(i), from: i, to: i + 1, scale: 1})
		}
		return all
	}
	at := 0
	for i, c := range set.Columns {
		f := fileColumn{name: c.Name, from: at, to: at + 1, scale: 1}
		if f.name == "" {
			f.name = "column " + digits(i+1)
		}
		switch csv.Kind(c.Kind) {
		case csv.Number:
		case csv.Standardize:
			if f.shift = c.Mean; c.Deviation > 0 {
				f.scale = c.Deviation
			}
		case csv.OneHot:
			f.to, f.texts = at+len(c.Texts), c.Texts
		default:
			continue
		}
		at, all = f.to, append(all, f)
	}
	return all
}

// values are those of a column, as the file has them; of texts their numbers, -1 for one that no training row has.
func (f *fileColumn) values(of *part, to []float64) []float64 {
	to = to[:0]
	for r := range of.rows {
		row := of.row(r)[f.from:f.to]
		v := float64(row[0])*f.scale + f.shift
		if w := math.Round(v); f.scale != 1 && math.Abs(v-w) <= math.Abs(v-f.shift)/(1<<22)+math.Abs(v)/(1<<50) {
			v = w // a whole number that float32 has rounded
		}
		if f.texts != nil {
			v = -1
			for k, is := range row {
				if is != 0 {
					v = float64(k)
				}
			}
		}
		to = append(to, v+0) // no negative zero
	}
	return to
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
