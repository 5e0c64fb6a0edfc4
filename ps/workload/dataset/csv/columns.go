package csv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
)

// Kind is what a column is.
type Kind string

// The kinds that Options.Columns names.
const (
	Number      Kind = "number"
	Standardize Kind = "standardize" // numbers with mean 0 and standard deviation 1 over the training rows
	OneHot      Kind = "onehot"      // a text, which becomes a column for each text of the training rows
)

// KindNames lists the values of Options.Columns.
func KindNames() []string { return []string{string(Number), string(Standardize), string(OneHot)} }

// Others stands for all columns that are not named.
const Others = "*"

// Kinds is a list of columns with the kind of each, as one text that can be compared.
type Kinds string

// KindsOf makes Kinds of names, as of keys of YAML, and the kind of each.
func KindsOf(names []string, kinds []string) Kinds {
	var all []string
	for i, name := range names {
		all = append(all, kinds[i]+" "+name)
	}
	return Kinds(strings.Join(all, "\n"))
}

// Columns are Kinds as a value of the YAML.
type Columns struct{ Kinds Kinds }

// Each calls f for each column.
func (k Kinds) Each(f func(name string, kind Kind)) {
	for _, item := range List(k).Items() {
		kind, name, _ := strings.Cut(item, " ")
		f(name, Kind(kind))
	}
}

// op is what the parser does with a column.
type op uint8

const (
	opNumber op = iota
	opWide      // a number, kept in float64 until it is standardized
	opText
	opGroup // a text that groups the rows
	opSkip
	opLabel
	opTarget // a number to predict
)

// scheme says what each column of the files is. It follows from the first file.
type scheme struct {
	names []string // nil: the files have no header
	ops   []op     // by column
	label int
	texts []textColumn
	wide  []int // columns of opWide, in their order
	kept  int   // columns of opNumber, opWide and opText
	wordy []int // columns of opNumber and opWide whose first values are texts, for hints
}

// textColumn is a column of opText.
type textColumn struct {
	column int
	at     int // its place among the kept ones; -1: it groups the rows
	classes.Dictionary
}

// name is the name of a column for messages.
func (s *scheme) name(column int) string {
	if s.names != nil && s.names[column] != "" {
		return strconv.Quote(s.names[column])
	}
	return strconv.Itoa(column + 1)
}

// schemeOf resolves the names of columns.
func (o *Options) schemeOf(path string, d *dialect) (s *scheme, err error) {
	n := len(d.first)
	s = &scheme{names: d.header, ops: make([]op, n)}
	fail := func(key string, err error) error { return fmt.Errorf("data: %s: data.%s: %w", path, key, err) }
	if s.label, err = s.labelColumn(o.Label, n); err != nil {
		return nil, fail("label", err)
	}
	if s.ops[s.label] = opLabel; o.Regress {
		s.ops[s.label] = opTarget
	}
	for _, name := range o.Drop.Items() {
		at, err := s.column(name, n)
		if err != nil {
			return nil, fail("drop", err)
		}
		if at == s.label {
			return nil, fail("drop", fmt.Errorf("column %s is the %s: name another one as data.label", s.name(at), o.labelWord()))
		}
		s.ops[at] = opSkip
	}
	named := make([]bool, n)
	var others Kind
	o.Columns.Each(func(name string, kind Kind) {
		if name == Others {
			others = kind
			return
		}
		at, failed := s.column(name, n)
		switch {
		case err != nil:
		case failed != nil:
			err = fail("columns", failed)
		case at == s.label:
			err = fail("columns", fmt.Errorf("column %s is the %s, which is no feature%s", s.name(at), o.labelWord(),
				map[bool]string{true: "; data.targets: standardize standardizes it"}[o.Regress && kind == Standardize]))
		case s.ops[at] == opSkip:
			err = fail("columns", fmt.Errorf("column %s is also in data.drop: leave it out of one of the two", s.name(at)))
		case named[at]:
			err = fail("columns", fmt.Errorf("column %s is named twice", s.name(at)))
		default:
			named[at], s.ops[at] = true, opOf(kind)
		}
	})
	if err != nil {
		return nil, err
	}
	if err := s.groupBy(o.Group, named); err != nil {
		return nil, fail("partition.by", err)
	}
	for i := range s.ops {
		if s.ops[i] == opNumber && !named[i] && others != "" {
			s.ops[i] = opOf(others)
		}
		switch s.ops[i] {
		case opWide:
			s.wide = append(s.wide, i)
		case opText:
			s.texts = append(s.texts, textColumn{column: i, at: s.kept})
		case opGroup:
			s.texts = append(s.texts, textColumn{column: i, at: -1})
		}
		if s.ops[i] <= opText {
			s.kept++
		}
	}
	if s.kept == 0 {
		return nil, fmt.Errorf("data: %s: no column is left beside the %s: are data.drop and data.delimiter right?", path, o.labelWord())
	}
	return s, nil
}

// labelWord is what the column Label has, for messages.
func (o *Options) labelWord() string {
	if o.Regress {
		return "target"
	}
	return "class"
}

// groupBy makes a column the one that groups the rows. The class groups them without.
func (s *scheme) groupBy(name string, named []bool) error {
	if name == "" {
		return nil
	}
	at, err := s.column(name, len(s.ops))
	switch {
	case err != nil:
		return err
	case at == s.label:
		return nil
	case named[at]:
		return fmt.Errorf("column %s groups the rows, and so is no feature: leave it out of data.columns", s.name(at))
	}
	s.ops[at] = opGroup
	return nil
}

func opOf(k Kind) op {
	switch k {
	case Standardize:
		return opWide
	case OneHot:
		return opText
	}
	return opNumber
}

// labelColumn is the column of the class.
func (s *scheme) labelColumn(label string, n int) (int, error) {
	at, words := 0, map[string]int{"": n - 1, "last": n - 1, "first": 0}
	named := slices.Index(s.names, label)
	if place, ok := words[label]; ok {
		if at = place; label != "" && named >= 0 && named != place {
			return 0, fmt.Errorf("%s is also the name of column %d: write its number, or that of the column that you mean", label, named+1)
		}
		return at, nil
	}
	return s.column(label, n)
}

// column is the place of a column that is given by its name, or by its number from 1.
func (s *scheme) column(name string, n int) (int, error) {
	named := slices.Index(s.names, name)
	number, err := strconv.Atoi(name)
	switch {
	case named >= 0 && err == nil && number >= 1 && number <= n && number != named+1:
		return 0, fmt.Errorf("%s is the name of column %d, and the number of another one: rename it in the header", name, named+1)
	case named >= 0:
		return named, nil
	case err == nil && number >= 1 && number <= n:
		return number - 1, nil
	case err == nil:
		return 0, fmt.Errorf("there is no column %s: columns have the numbers 1 to %d", name, n)
	case s.names == nil:
		return 0, fmt.Errorf("there is no column %s, because the files have no header: write a number from 1 to %d, or set data.header: true",
			files.Clip(name), n)
	}
	for i, other := range s.names {
		if strings.EqualFold(strings.TrimSpace(other), strings.TrimSpace(name)) {
			return 0, fmt.Errorf("there is no column %s: did you mean %s, column %d?", files.Clip(name), files.Clip(other), i+1)
		}
	}
	return 0, fmt.Errorf("there is no column %s; the columns are %s", files.Clip(name), classes.List(s.names))
}
