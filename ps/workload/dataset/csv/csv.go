// Package csv reads tables of text: files whose lines are rows, and whose separator, header and kinds of classes are found from their first
// lines. It parses numbers in parallel.
//
//	train, test, found, err := csv.Read(paths, tests, options, in)
//
// What is found is said in a line for each file. What the first lines leave open is an error, which names the key that settles it.
package csv

import (
	"strings"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
)

// Options say how files are read, and what their columns are. The zero value finds what it can: the last column is the class, and all
// others are numbers. Options can be compared.
type Options struct {
	// Header is "true" if the first line has the names of the columns, "false" if it is a row, and "" or "auto" if the file tells.
	Header string
	// Delimiter is comma, semicolon, tab, bar or space, and "" or "auto" if the file tells. Several spaces are one.
	Delimiter string
	// Decimal is what stands before the fraction of a number: point (also if empty) or comma.
	Decimal string
	// Label is the column with the class: "last" (also if empty), "first", a name, or a number from 1.
	Label string
	// Drop lists columns that are left out, by name or number.
	Drop List
	// Columns says what else than numbers columns are.
	Columns Kinds
	// Group is a column whose values group the rows, which then is no feature; empty: none. That of the class is no such column.
	Group string
	// Missing says what becomes of missing values: "error" (also if empty), or "mean": that of the column over the training rows.
	Missing string
	// Scale divides every number; 0: 1.
	Scale float64
	// Classes is the number of classes, 0: as many as there are. Features is the number of columns beside the class, 0: any.
	Classes, Features int
	// Regress: the column Label has numbers to predict, not classes.
	Regress bool
	// Split is the share of the rows that are test rows, if there are no test files; it is at least 0 and less than 1. Seed picks them.
	Split float64
	Seed  uint64
}

// The values of Options.Missing and of Options.Decimal that are not the default.
const (
	MissingMean  = "mean"
	DecimalComma = "comma"
)

// List is a list of texts without line ends, as one text that can be compared.
type List string

// ListOf makes a List.
func ListOf(items []string) List { return List(strings.Join(items, "\n")) }

// Items are the texts of a list.
func (l List) Items() []string {
	if l == "" {
		return nil
	}
	return strings.Split(string(l), "\n")
}

// Found is what reading has found out about the columns and the classes.
type Found struct {
	Classes int
	Names   []string // of classes, by class; nil: the files have the numbers from 0
	Columns []Column // in the order of the files
	// Form says how the bytes of the files were understood, whatever keys said so: the same for a column that is given by name or by
	// number. "": as without any key.
	Form string
}

// Read reads the training files, and the test files or a split of the training rows. test has no rows if there is neither.
func Read(paths, tests []string, o Options, in *files.Reading) (train, test *Table, found Found, err error) {
	r := &reader{Options: &o, in: in}
	return r.readAll(paths, tests)
}

func (r *reader) readAll(paths, tests []string) (train, test *Table, found Found, err error) {
	train, test = &Table{}, &Table{}
	if err := r.files(paths, train); err != nil {
		return nil, nil, found, err
	}
	if len(tests) > 0 {
		r.isTest = true
		if err := r.files(tests, test); err != nil {
			return nil, nil, found, err
		}
	}
	found, err = r.settle(paths[0], train, test)
	return train, test, found, err
}

// settle numbers the classes and makes the columns those of the model, after all files have been read.
func (r *reader) settle(path string, train, test *Table) (found Found, err error) {
	if r.Regress {
		r.noteNames(path)
	} else {
		r.noteClasses(path, train)
		if found.Classes, found.Names, err = r.labels.Settle(r.in, path, train.y, test.y, r.Classes); err != nil {
			return found, err
		}
	}
	if !r.isTest && r.Split > 0 { // the numbers of classes do not depend on the split
		if err = train.split(path, r.Split, r.Seed, test, r.in); err != nil {
			return found, err
		}
		if !r.Regress {
			classes.NoteSplit(r.in, path, train.y, test.y, found.Names)
		}
	}
	if found.Columns, err = r.settleColumns(path, train, test); err != nil {
		return found, err
	}
	found.Form = r.form()
	r.say(path, train, test, &found)
	return found, nil
}
