package classes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/files"
)

// TextsMax bounds the texts of a column: one with the names of persons is neither a class nor a kind.
const TextsMax = 1 << 16

// Dictionary numbers texts.
type Dictionary struct {
	Names  []string
	Number map[string]int32 // by name
}

// Add returns the number of a text, and says whether it is new.
func (d *Dictionary) Add(text string) (number int32, isNew bool) {
	if number, ok := d.Number[text]; ok {
		return number, false
	}
	if d.Number == nil {
		d.Number = map[string]int32{}
	}
	text = strings.Clone(text)
	number = int32(len(d.Names))
	d.Names, d.Number[text] = append(d.Names, text), number
	return number, true
}

// Sort numbers the texts in their order, which does not depend on the order of rows. Numbers come in the order of their values. It returns
// the new number of each old one.
func (d *Dictionary) Sort(in func(a, b string) int) []int32 {
	place := make([]int32, len(d.Names))
	old := slices.Clone(d.Names)
	slices.SortFunc(d.Names, in)
	for n, name := range d.Names {
		d.Number[name] = int32(n)
	}
	for was, name := range old {
		place[was] = d.Number[name]
	}
	return place
}

// Labels are the classes of rows: whole numbers, or texts.
type Labels struct {
	Dictionary
	IsText, IsNumber bool

	first string // the first class
}

// Admit takes the first text or the first number of a file. It fails if the classes were of the other kind so far.
func (l *Labels) Admit(isText bool, field string) error {
	switch {
	case isText && l.IsNumber:
		return fmt.Errorf("class %s is no whole number, but those of the rows above are, such as %s; write all classes as numbers, or "+
			"all as texts", files.Clip(field), files.Clip(l.first))
	case !isText && l.IsText:
		return fmt.Errorf("class %s is no text, but those of the rows above are, such as %s; write all classes as texts, or all as numbers "+
			"from 0", files.Clip(field), files.Clip(l.first))
	}
	if !l.IsText && !l.IsNumber {
		l.first = field
	}
	l.IsText, l.IsNumber = isText, !isText
	return nil
}

// Text takes a class that is a text. It fails if there are too many, or if a test file has one that the training files have not.
func (l *Labels) Text(field string, most int, isTest bool) (int32, error) {
	number, isNew := l.Add(field)
	switch {
	case !isNew:
		return number, nil
	case isTest:
		l.Names = l.Names[:number]
		return 0, fmt.Errorf("class %s is not in the training file, whose classes are %s; remove the row, or put rows of this class into "+
			"the training file", files.Clip(field), List(l.Names))
	case most > 0 && len(l.Names) > most:
		return 0, fmt.Errorf("class %s is one more than the %d that are wanted: %s", files.Clip(field), most, List(l.Names[:most]))
	case len(l.Names) > TextsMax:
		return 0, fmt.Errorf("class %s is one more than the limit, %d texts; is it the column of the class? name that in data.label",
			files.Clip(field), TextsMax)
	}
	return number, nil
}

// Settle numbers the classes of two parts from 0, in place. It returns how many there are, and their names if they are not these numbers.
// Texts are numbered in their order.
func (l *Labels) Settle(in *files.Reading, path string, train, test []int32, given int) (count int, names []string, err error) {
	if !l.IsText {
		values := slices.Clone(train)
		slices.Sort(values)
		values = slices.Compact(values)
		if count, err = From0(in, path, train, test, given); err != nil {
			return 0, nil, err
		}
		if values[0] != 0 && slices.Contains(train, 0) { // they were numbered
			for _, v := range values {
				names = append(names, strconv.Itoa(int(v)))
			}
		}
		return count, names, nil
	}
	number := l.Sort(strings.Compare)
	for _, part := range [][]int32{train, test} {
		for i, y := range part {
			part[i] = number[y]
		}
	}
	count = max(2, len(l.Names), given)
	noteEmpty(in, path, train, l.Names, count)
	return count, l.Names, nil
}
