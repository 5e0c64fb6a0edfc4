package csv

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/files"
)

// textsMax bounds the texts of a column: one with the names of persons is neither a class nor a kind.
const textsMax = 1 << 16

// dictionary numbers the texts of a column.
type dictionary struct {
	names  []string
	number map[string]int32 // by name
}

// add returns the number of a text, and says whether it is new.
func (d *dictionary) add(text string) (number int32, isNew bool) {
	if number, ok := d.number[text]; ok {
		return number, false
	}
	if d.number == nil {
		d.number = map[string]int32{}
	}
	text = strings.Clone(text)
	number = int32(len(d.names))
	d.names, d.number[text] = append(d.names, text), number
	return number, true
}

// sort numbers the texts in their order, which does not depend on the order of rows. Numbers come in the order of their values. It returns
// the new number of each old one.
func (d *dictionary) sort(in func(a, b string) int) []int32 {
	place := make([]int32, len(d.names))
	old := slices.Clone(d.names)
	slices.SortFunc(d.names, in)
	for n, name := range d.names {
		d.number[name] = int32(n)
	}
	for was, name := range old {
		place[was] = d.number[name]
	}
	return place
}

// labels are the classes of rows: whole numbers, or texts.
type labels struct {
	dictionary
	isText, isNumber bool
	first            string // the first class
}

// admit takes the first text or the first number of a file. It fails if the classes were of the other kind so far.
func (l *labels) admit(isText bool, field string) error {
	switch {
	case isText && l.isNumber:
		return fmt.Errorf("class %s is no whole number, but those of the rows above are, such as %s; write all classes as numbers, or "+
			"all as texts, or name the column of the class, as in data.label: last", files.Clip(field), files.Clip(l.first))
	case !isText && l.isText:
		return fmt.Errorf("class %s is no text, but those of the rows above are, such as %s; write all classes as texts, or all as numbers "+
			"from 0", files.Clip(field), files.Clip(l.first))
	}
	if !l.isText && !l.isNumber {
		l.first = field
	}
	l.isText, l.isNumber = isText, !isText
	return nil
}

// text takes a class that is a text. It fails if there are too many, or if a test file has one that the training files have not.
func (l *labels) text(field string, most int, isTest bool) (int32, error) {
	number, isNew := l.add(field)
	switch {
	case !isNew:
		return number, nil
	case isTest:
		l.names = l.names[:number]
		return 0, fmt.Errorf("class %s is not in the training file, whose classes are %s; remove the row, or put rows of this class into "+
			"the training file", files.Clip(field), classes.List(l.names))
	case most > 0 && len(l.names) > most:
		return 0, fmt.Errorf("class %s is one more than the %d that are wanted: %s", files.Clip(field), most, classes.List(l.names[:most]))
	case len(l.names) > textsMax:
		return 0, fmt.Errorf("class %s is one more than the limit, %d texts; is it the column of the class? name that in data.label",
			files.Clip(field), textsMax)
	}
	return number, nil
}

// checkText fails for a text that is not in UTF-8.
func checkText(what, field string) error {
	if !utf8.ValidString(field) {
		return fmt.Errorf("%s %s is not in UTF-8; save the file as UTF-8", what, files.Clip(field))
	}
	return nil
}
