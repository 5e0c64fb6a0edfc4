package csv

import (
	"fmt"
	"math"
	"slices"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
)

// merger puts the rows of blocks into the table, in the order of the file.
type merger struct {
	*reader
	src   *files.Source
	t     *Table
	known map[*parser][][]int32 // by parser and column of texts: the number in the file of each text of the parser
}

// at makes an error of a mistake in a block.
func (m *merger) at(j *job, f *fault, err error) error {
	if m.isParquet {
		return fmt.Errorf("data: %s:%s: %w", m.src.Path, m.scheme.rowOf(j.line+f.line, f.column), err)
	}
	return fmt.Errorf("data: %s:%s: %w", m.src.Path, place(j.line+f.line, f.column), err)
}

// add appends the rows of a block.
func (m *merger) add(p *parser, j *job) error {
	c := j.out
	if err := m.texts(p, j); err != nil {
		return err
	}
	if c.err != nil {
		return m.at(j, c.err, c.err.err)
	}
	t, known := m.t, m.known[p]
	for k, column := range m.scheme.texts {
		if column.at < 0 {
			for i, g := range c.group {
				c.group[i] = known[k][g]
			}
			continue
		}
		for at := column.at; at < len(c.x); at += m.scheme.kept {
			if c.x[at] >= 0 {
				c.x[at] = float32(known[k][int(c.x[at])])
			}
		}
	}
	if m.labels.IsText {
		for i, y := range c.y {
			c.y[i] = known[len(m.scheme.texts)][y]
		}
	}
	if err := files.Put(m.in, m.src, &t.x, c.x...); err != nil {
		return err
	}
	if err := files.Put(m.in, m.src, &t.y, c.y...); err != nil {
		return err
	}
	if err := files.Put(m.in, m.src, &t.group, c.group...); err != nil {
		return err
	}
	if len(t.y) > math.MaxInt32 {
		return fmt.Errorf("data: %s: more than %d rows", m.src.Path, math.MaxInt32)
	}
	m.missing += c.missing
	m.comments += c.comments
	return files.Put(m.in, m.src, &t.wide, c.wide...)
}

// texts numbers the texts that a block is the first of its parser to have, and checks the kind of the classes.
func (m *merger) texts(p *parser, j *job) error {
	if m.known == nil {
		m.known = map[*parser][][]int32{}
	}
	if m.known[p] == nil {
		m.known[p] = make([][]int32, len(m.scheme.texts)+1)
	}
	c, known := j.out, m.known[p]
	firsts := []*fresh{c.firstText, c.firstNumber}
	if c.firstText != nil && c.firstNumber != nil && c.firstNumber.line < c.firstText.line {
		slices.Reverse(firsts)
	}
	for _, first := range firsts {
		if first != nil {
			if err := m.labels.Admit(first == c.firstText, first.text); err != nil {
				hint := "; or name the column of the class in data.label"
				if first == c.firstNumber && m.first.header == nil { // the text may be a name
					hint = "; if the first line is a header, set data.header: true"
				}
				return m.at(j, &first.fault, fmt.Errorf("%w%s", err, hint))
			}
		}
	}
	for k, news := range c.news {
		for _, f := range news {
			if err := m.in.Take(m.src, int64(len(f.text))+128); err != nil {
				return err
			}
			if k == len(m.scheme.texts) {
				number, err := m.labels.Text(f.text, m.Classes, m.isTest)
				if err != nil {
					return m.at(j, &f.fault, err)
				}
				known[k] = append(known[k], number)
				continue
			}
			column := &m.scheme.texts[k]
			number, _ := column.Add(f.text)
			if len(column.Names) > classes.TextsMax {
				return m.at(j, &f.fault, fmt.Errorf("column %s has more than %d different texts: leave it out by data.drop: [%s]",
					m.scheme.name(column.column), classes.TextsMax, m.scheme.name(column.column)))
			}
			known[k] = append(known[k], number)
		}
	}
	return nil
}

// reserve makes room for all rows, if the size of the file tells about how many there are: the first block had so many bytes.
func (m *merger) reserve(bytes int) error {
	if m.src.Packed() || m.src.Size < 0 || len(m.t.y) == 0 {
		return nil
	}
	return m.reserveRows(int(float64(len(m.t.y)) * float64(m.src.Size) / float64(bytes) * 1.02))
}

// reserveRows makes room for so many rows of the table, unless they take much of the memory that is left.
func (m *merger) reserveRows(rows int) error {
	more := rows - len(m.t.y)
	need := int64(rows) * int64(4*m.scheme.kept+8*len(m.scheme.wide)+4)
	if more <= 0 || need > m.in.Left()/2 {
		return nil
	}
	var err error
	if m.t.x, err = files.Grow(m.in, m.src, m.t.x, more*m.scheme.kept); err != nil {
		return err
	}
	if m.t.y, err = files.Grow(m.in, m.src, m.t.y, more); err != nil {
		return err
	}
	m.t.wide, err = files.Grow(m.in, m.src, m.t.wide, more*len(m.scheme.wide))
	return err
}
