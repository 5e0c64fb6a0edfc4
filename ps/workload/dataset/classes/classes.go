// Package classes numbers the classes of rows, which files have as numbers or as texts.
package classes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fluentps/ps/workload/dataset/files"
)

// Max bounds class numbers, so that a wrong column does not make a model with millions of outputs.
const Max = 1 << 20

// From0 numbers the classes of two parts from 0, in place, and returns how many there are; given: so many are wanted, 0: any number.
// Numbers stay if they begin with 0 in one of the parts, or if they lie below given. Others, such as -1 and +1, are numbered in their
// order. It says that, and notes what makes classes doubtful.
func From0(in *files.Reading, path string, train, test []int32, given int) (int, error) {
	values := slices.Clone(train)
	slices.Sort(values)
	values = slices.Compact(values)
	unseen := func(i int) error {
		return fmt.Errorf("data: %s: class %d of test row %d is none of the training rows, which have %s", path, test[i], i+1, some(values))
	}
	isGiven := values[0] > 0 && int(values[len(values)-1]) < given
	if values[0] == 0 || slices.Contains(test, 0) && values[0] > 0 || isGiven {
		if i := slices.IndexFunc(test, func(y int32) bool { return y < 0 || given > 0 && int(y) >= given }); i >= 0 {
			return 0, unseen(i)
		}
		if most := int(values[len(values)-1]); given > 0 && most >= given {
			return 0, fmt.Errorf("data: %s: class %d, must be 0 to %d: is the number of classes right?", path, most, given-1)
		}
		noteHoles(in, path, train, test, values, given)
		return Count(given, train, test), nil
	}
	for p, part := range [][]int32{train, test} {
		for i, y := range part {
			n, ok := slices.BinarySearch(values, y)
			if !ok && p == 1 {
				return 0, unseen(i)
			}
			part[i] = int32(n)
		}
	}
	in.Found = append(in.Found, fmt.Sprintf("%s: classes are %s, and are numbered 0 to %d", path, some(values), len(values)-1))
	if len(values) == 1 && len(train) > 1 {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: all training rows are of class %d", path, values[0]))
	}
	return max(2, len(values), given), nil
}

// noteHoles notes classes without training rows, and one that is far from all others: it may be a mistake, and makes a model larger.
func noteHoles(in *files.Reading, path string, train, test, values []int32, given int) {
	most, n := values[len(values)-1], len(values)
	for _, y := range test {
		most = max(most, y)
	}
	note := func(format string, args ...any) {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: "+format, append([]any{path}, args...)...))
	}
	switch {
	case n == 1 && len(train) > 1:
		note("all training rows are of class %d", values[0])
	case given > 0 || n > int(most):
	case n > 2 && values[n-1] == most && int(most) > 2*(int(values[n-2])+1)+8:
		rows := 0
		for _, y := range train {
			if y == most {
				rows++
			}
		}
		note("class %d is far from the others, which are at most %d; %d of %d training rows are of it: is it a class? each number below it "+
			"is a class, too", most, values[n-2], rows, len(train))
	case most > 0:
		note("the largest class is %d, but only %d classes have training rows", most, n)
	}
}

// some lists the first values.
func some(values []int32) string {
	const most = 8
	texts := make([]string, 0, most+1)
	for _, v := range values[:min(most, len(values))] {
		texts = append(texts, fmt.Sprint(v))
	}
	if len(values) > most {
		texts = append(texts, fmt.Sprintf("... %d", values[len(values)-1]))
	}
	return strings.Join(texts, ", ")
}

// Count returns the number of classes: the given one, or the largest label plus 1 but at least 2.
func Count(given int, labels ...[]int32) int {
	if given > 0 {
		return given
	}
	classes := int32(2)
	for _, part := range labels {
		for _, y := range part {
			classes = max(classes, y+1)
		}
	}
	return int(classes)
}

// List lists the first names.
func List(names []string) string {
	const most = 10
	var b strings.Builder
	if len(names) == 0 {
		return "none"
	}
	for i, name := range names[:min(most, len(names))] {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(files.Clip(name))
	}
	if len(names) > most {
		fmt.Fprintf(&b, " and %d more", len(names)-most)
	}
	return b.String()
}

// noteEmpty notes classes that no training row is of, where they have names.
func noteEmpty(in *files.Reading, path string, train []int32, names []string, count int) {
	rows := make([]int, count)
	for _, y := range train {
		rows[y]++
	}
	var empty []string
	full := 0
	for y, n := range rows {
		switch {
		case n > 0:
			full++
		case y < len(names):
			empty = append(empty, names[y])
		}
	}
	if len(empty) > 0 {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: no training row is of %s", path, List(empty)))
	}
	if full == 1 {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: all training rows are of class %s", path, List(names[train[0]:train[0]+1])))
	}
}

// NoteSplit notes classes of which a split has left rows in the test part alone.
func NoteSplit(in *files.Reading, path string, train, test []int32, names []string) {
	has := map[int32]bool{}
	for _, y := range train {
		has[y] = true
	}
	var missing []string
	for _, y := range test {
		if has[y] {
			continue
		}
		has[y] = true
		if int(y) < len(names) {
			missing = append(missing, names[y])
		} else {
			missing = append(missing, strconv.Itoa(int(y)))
		}
	}
	if slices.Sort(missing); missing != nil {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: the split leaves all rows of class %s in the test part: another data.split.seed, or "+
			"a smaller data.split.test, may leave some for training", path, List(missing)))
	}
}
