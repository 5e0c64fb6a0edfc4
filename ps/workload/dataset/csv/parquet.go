package csv

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"fluentps/ps/workload/dataset/files"
	"fluentps/ps/workload/dataset/parquet"
	"fluentps/ps/workload/dataset/text"
)

// ReadParquet is Read for files of Parquet, whose columns are known by their names. Header, Delimiter and Decimal of the options are not
// looked at.
func ReadParquet(paths, tests []string, o Options, in *files.Reading) (train, test *Table, found Found, err error) {
	o.Header, o.Delimiter, o.Decimal = "", "", ""
	r := &reader{Options: &o, in: in, isParquet: true}
	return r.readAll(paths, tests)
}

// parquet appends the rows of a file.
func (r *reader) parquet(path string, t *Table) error {
	return r.in.ReadAt(path, files.TextHint, func(file io.ReaderAt, size int64) error {
		f, err := parquet.Open(file, size)
		if err != nil {
			return fmt.Errorf("data: %s: %w", path, err)
		}
		if err := r.schema(path, f); err != nil {
			return err
		}
		if f.Rows == 0 {
			return fmt.Errorf("data: %s: no rows", path)
		}
		return r.columnar(path, size, f, t)
	})
}

// schema makes the scheme of the columns of the first file, and compares those of others with it.
func (r *reader) schema(path string, f *parquet.File) error {
	names := make([]string, len(f.Columns))
	for i, c := range f.Columns {
		names[i] = c.Name
	}
	if r.first == nil {
		if len(names) < 2 || r.Features > 0 && len(names) != r.Features+1 {
			return fmt.Errorf("data: %s: %d columns, want %d (%d features and the %s)", path, len(names), max(r.Features, 1)+1, max(r.Features, 1),
				r.labelWord())
		}
		d := &dialect{sep: ',', point: '.', header: names, first: names}
		s, err := r.schemeOf(path, d)
		if err != nil {
			return err
		}
		r.first, r.scheme = d, s
		for i := range f.Columns {
			if op := s.ops[i]; f.Columns[i].IsText() && (op == opNumber || op == opWide) {
				s.wordy = append(s.wordy, i)
			}
		}
		if err := d.checkHeader(path, 0, s, nil); err != nil {
			return err
		}
	} else if err := sameNames(path, names, r.first.header); err != nil {
		return err
	}
	for i, c := range f.Columns {
		if c.Refused != "" && r.scheme.ops[i] != opSkip {
			way := fmt.Sprintf("leave it out by data.drop: [%s], or write it as numbers or texts", r.scheme.name(i))
			if i == r.scheme.label {
				way = "name another column as data.label, or write it as numbers or texts"
			}
			return fmt.Errorf("data: %s: column %s %s, which are not read: %s", path, r.scheme.name(i), c.Refused, way)
		}
	}
	return nil
}

// sameNames fails if a file has other columns than the first one.
func sameNames(path string, names, first []string) error {
	if len(names) != len(first) {
		return fmt.Errorf("data: %s: %d columns, and the first file has %d", path, len(names), len(first))
	}
	for i, name := range names {
		if name != first[i] {
			return fmt.Errorf("data: %s: column %d is %s, and %s in the first file: write the same columns into all files", path, i+1,
				files.Clip(name), files.Clip(first[i]))
		}
	}
	return nil
}

// columnar appends the rows of a file whose columns are read one by one.
func (r *reader) columnar(path string, size int64, f *parquet.File, t *Table) error {
	m := &merger{reader: r, src: &files.Source{Path: path, Bytes: size}, t: t}
	if err := m.reserveRows(int(f.Rows)); err != nil {
		return err
	}
	p := newParser(r.Options, r.scheme, r.first)
	j := &job{out: &chunk{}}
	skip := make([]bool, len(r.scheme.ops))
	for i, op := range r.scheme.ops {
		skip[i] = op == opSkip
	}
	var damage error // of the file
	take := func(bytes int64) error {
		if bytes < 0 {
			r.in.Give(-bytes)
			return nil
		}
		return r.in.Take(m.src, bytes)
	}
	err := f.Each(skip, take, func(b *parquet.Batch) error {
		j.line = int(b.Row) + 1
		p.batch(b, j.out)
		damage = m.add(p, j)
		return damage
	})
	if err != nil && damage == nil {
		err = fmt.Errorf("data: %s: %w", path, err)
	}
	return err
}

// batch makes a chunk of the values of some rows.
func (p *parser) batch(b *parquet.Batch, out *chunk) {
	p.out = out
	*out = chunk{x: out.x[:0], wide: out.wide[:0], y: out.y[:0], group: out.group[:0], news: make([][]fresh, len(p.seen))}
	for i := range b.N {
		texts, y := 0, int32(0)
		for n, op := range p.ops {
			if op == opSkip {
				continue
			}
			v, err := &b.Values[n][i], error(nil)
			switch where := (fault{line: i, column: n + 1}); op {
			case opNumber, opWide:
				err = p.numberOf(v, op == opWide)
			case opText, opGroup:
				err = p.textOf(v, texts, where)
				texts++
			case opLabel:
				y, err = p.classOf(v, where)
			case opTarget:
				y, err = p.targetOf(v)
			}
			if err != nil {
				out.err = &fault{i, n + 1, fmt.Errorf("%w%s", err, p.hintOf(v, n))}
				return
			}
		}
		out.y = append(out.y, y)
		out.rows++
	}
}

// hintOf guesses the mistake in a value, as a text that begins with a semicolon.
func (p *parser) hintOf(v *parquet.Value, n int) string {
	isNumber := p.ops[n] == opNumber || p.ops[n] == opWide
	switch {
	case isNumber && v.Missing():
		return "; or set data.missing: mean"
	case isNumber && v.IsText() && len(p.wordy) > 1:
		return p.hintWordy()
	case isNumber && v.IsText():
		return fmt.Sprintf("; if column %s has texts, write data.columns: {%s: onehot}, or leave it out by data.drop: [%s]", p.name(n),
			p.name(n), p.name(n))
	}
	return ""
}

// numberOf appends a number. What is no plain number is judged as in a text.
func (p *parser) numberOf(v *parquet.Value, wide bool) error {
	if v.IsText() || v.Missing() {
		return p.number(v.String(), wide)
	}
	n := v.Number
	if wide || p.Scale != 0 { // what is computed with it is what would be computed with its text
		n = v.Short()
	}
	if p.Scale != 0 {
		n /= p.Scale
	}
	f := float32(n)
	switch {
	case math.IsInf(float64(f), 0) && !(wide && !math.IsInf(n, 0)):
		return p.number(v.String(), wide)
	case wide:
		p.out.x, p.out.wide = append(p.out.x, 0), append(p.out.wide, n)
	default:
		p.out.x = append(p.out.x, f)
	}
	return nil
}

// textOf appends the number of a text. Numbers of whole columns are texts, too.
func (p *parser) textOf(v *parquet.Value, k int, where fault) error {
	if v.IsText() {
		if number, ok := p.seen[k].Number[string(v.Bytes)]; ok { // without a copy
			if p.texts[k].at < 0 {
				p.out.group = append(p.out.group, number)
			} else {
				p.out.x = append(p.out.x, float32(number))
			}
			return nil
		}
		if what := strangeIn(v.Bytes); what != "" {
			return errors.New(what)
		}
	}
	return p.text(v.String(), k, where)
}

// strangeIn says what is strange in a text; "": nothing.
func strangeIn(b []byte) string {
	s := string(b)
	for i := range len(s) {
		if s[i] == '\n' || s[i] == '\r' { // as within quotes
			continue
		}
		if what := text.Strange(s[i:]); what != "" {
			return what
		}
	}
	return ""
}

// classOf is the number of a class.
func (p *parser) classOf(v *parquet.Value, where fault) (int32, error) {
	if n := v.Number; !v.IsText() && !v.Missing() && p.out.firstNumber != nil && n >= 0 && n < 1<<16 && n == math.Trunc(n) &&
		(p.Classes == 0 || int(n) < p.Classes) {
		return int32(n), nil
	}
	if v.IsText() {
		if what := strangeIn(v.Bytes); what != "" {
			return 0, errors.New(what)
		}
	}
	return p.class(v.String(), where)
}

// targetOf is the bits of a number to predict.
func (p *parser) targetOf(v *parquet.Value) (int32, error) {
	if f := float32(v.Number); !v.IsText() && !v.Missing() && !math.IsInf(float64(f), 0) {
		return int32(math.Float32bits(f)), nil
	}
	return p.target(v.String())
}

// rowOf is the place of a value of Parquet for messages.
func (s *scheme) rowOf(row, column int) string {
	if column < 1 || column > len(s.ops) {
		return " row " + strconv.Itoa(row)
	}
	return fmt.Sprintf(" row %d, column %s", row, s.name(column-1))
}
