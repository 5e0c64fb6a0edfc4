package profile

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/draw"
)

// columnsMost is the most columns of a profile: more histograms than that nobody looks at.
const columnsMost = 48

func digits(i int) string { return strconv.Itoa(i) }

// columns looks at each column alone.
func (p *Profile) columns(set *dataset.Set, train, test *part) {
	all := fileColumns(set, func(i int) string { return "x[" + digits(i) + "]" })
	g := newGuess(train, set.Classes)
	alone := make([]float64, len(all))
	var values, tests []float64
	for i := range all {
		values = all[i].values(train, values)
		alone[i] = g.from(values, all[i].texts != nil)
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	if len(order) > columnsMost {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(alone[b], alone[a]) }) // NaN is the least
		p.Left, order = len(order)-columnsMost, order[:columnsMost]
	}
	for _, i := range order {
		f := &all[i]
		values, tests = f.values(train, values), f.values(test, tests)
		c := Column{Name: f.name, Alone: alone[i], Constant: !varies(values)}
		if f.texts != nil {
			c.Texts = shares(f.texts, values, tests)
		} else {
			c.Shown = histogram(values, tests)
			c.Rises = len(values) >= rowsToGuess && rises(values)
		}
		p.Columns = append(p.Columns, c)
	}
}

// varies says whether there are two different finite values.
func varies(values []float64) bool {
	first := math.NaN()
	for _, v := range values {
		switch {
		case !isFinite(v):
		case math.IsNaN(first):
			first = v
		case v != first:
			return true
		}
	}
	return false
}

func rises(values []float64) bool {
	for i := 1; i < len(values); i++ {
		if !(values[i] > values[i-1]) {
			return false
		}
	}
	return true
}

// shares counts the texts of a column.
func shares(texts []string, train, test []float64) []Text {
	all := make([]Text, len(texts))
	for k, name := range texts {
		all[k].Name = name
	}
	for _, v := range train {
		if v >= 0 {
			all[int(v)].Train += 1 / float64(len(train))
		}
	}
	for _, v := range test {
		if v >= 0 {
			all[int(v)].Test += 1 / float64(len(test))
		}
	}
	slices.SortStableFunc(all, func(a, b Text) int { return cmp.Compare(b.Train, a.Train) })
	return all
}

// guess learns what a row is from a value, on about half of the rows, and is tried on the others.
type guess struct {
	rows    *part
	classes int   // 0: rows have targets
	common  int32 // the commonest class of the rows that are learned from
}

func newGuess(rows *part, classes int) *guess {
	g := &guess{rows: rows, classes: classes}
	counts := map[int32]int{}
	for i, y := range rows.y {
		if learns(i) {
			counts[y]++
		}
	}
	most := 0
	for y, n := range counts {
		if n > most || n == most && y < g.common {
			g.common, most = y, n
		}
	}
	return g
}

// mean is that of n targets.
type mean struct{ sum, n float64 }

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }

// learns says whether a guess learns from a row. Rows are drawn, because files have orders: every other row may be of one class.
func learns(row int) bool { return draw.Mix(learnSeed, uint64(row))&1 == 0 }

const learnSeed = 0x6c6561726e

const (
	rowsToGuess = 20 // fewer rows tell nothing
	rowsOfGroup = 10 // that are learned from, about
	groupsMost  = 32
)

// from is how good a guess from these values is: Column.Alone. Values are texts, or numbers, which are cut into groups of about as many
// rows.
func (g *guess) from(values []float64, texts bool) float64 {
	if len(values) < rowsToGuess {
		return math.NaN()
	}
	group := func(v float64) int32 { return int32(v) }
	if !texts {
		edges := quantiles(values, min(groupsMost, max(2, len(values)/2/rowsOfGroup)))
		group = func(v float64) int32 {
			at, found := slices.BinarySearch(edges, v)
			if found {
				at++
			}
			return int32(at)
		}
	}
	if g.classes > 0 {
		return g.accuracy(values, group)
	}
	r2 := g.r2(values, group)
	if !texts {
		r2 = max(r2, g.line(values)) // NaN stays
	}
	return r2
}

// line is r2 of the straight line through the learning rows. A copy of the target with a factor is a line.
func (g *guess) line(values []float64) float64 {
	var x, t, tried mean
	for i, v := range values {
		if learns(i) {
			x.add(v)
			t.add(g.rows.target[i])
		} else {
			tried.add(g.rows.target[i])
		}
	}
	mx, mt := x.sum/x.n, t.sum/t.n
	var both, square, errors, spread float64
	for i, v := range values {
		if learns(i) {
			both, square = both+(v-mx)*(g.rows.target[i]-mt), square+(v-mx)*(v-mx)
		}
	}
	if !(square > 0) {
		return 0
	}
	for i, v := range values {
		if !learns(i) {
			e, d := g.rows.target[i]-mt-both/square*(v-mx), g.rows.target[i]-tried.sum/tried.n
			errors, spread = errors+e*e, spread+d*d
		}
	}
	if r2 := 1 - errors/spread; r2 > 0 { // also NaN is not
		return r2
	}
	return 0
}

// quantiles are up to n-1 numbers that cut the learning values into groups; equal values stay together.
func quantiles(values []float64, n int) (edges []float64) {
	var sorted []float64
	for i, v := range values {
		if learns(i) {
			sorted = append(sorted, v)
		}
	}
	slices.Sort(sorted)
	for k := 1; k < n; k++ {
		edges = append(edges, sorted[k*len(sorted)/n])
	}
	return slices.Compact(edges)
}

// accuracy guesses the commonest class of the group, and of all rows where the group has none.
func (g *guess) accuracy(values []float64, group func(float64) int32) float64 {
	type best struct {
		class int32
		n     int
	}
	counts, most := map[[2]int32]int{}, map[int32]best{}
	for i := range values {
		if !learns(i) {
			continue
		}
		k, y := group(values[i]), g.rows.y[i]
		counts[[2]int32{k, y}]++
		if n := counts[[2]int32{k, y}]; n > most[k].n {
			most[k] = best{y, n}
		}
	}
	right, tried := 0, 0
	for i := range values {
		if learns(i) {
			continue
		}
		class := g.common
		if m, ok := most[group(values[i])]; ok {
			class = m.class
		}
		tried++
		if class == g.rows.y[i] {
			right++
		}
	}
	return float64(right) / float64(tried)
}

// r2 guesses the mean target of the group, and of all rows where the group has none. It is at least 0.
func (g *guess) r2(values []float64, group func(float64) int32) float64 {
	means, all, tried := map[int32]mean{}, mean{}, mean{}
	for i, v := range values {
		t := g.rows.target[i]
		if !learns(i) {
			tried.add(t)
			continue
		}
		m := means[group(v)]
		m.add(t)
		all.add(t)
		means[group(v)] = m
	}
	var errors, spread float64
	for i, v := range values {
		if learns(i) {
			continue
		}
		m, ok := means[group(v)]
		if !ok {
			m = all
		}
		e, d := g.rows.target[i]-m.sum/m.n, g.rows.target[i]-tried.sum/tried.n
		errors, spread = errors+e*e, spread+d*d
	}
	if spread == 0 {
		return math.NaN()
	}
	return max(0, 1-errors/spread)
}
