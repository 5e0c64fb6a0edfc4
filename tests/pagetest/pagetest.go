// Package pagetest holds the tables of figures in pages to what makes them. The line above such a table names the
// command, between backticks, that makes it anew; a test of that command compares the table with what it has found
// out, or writes it into the page.
package pagetest

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Table compares the table behind the command in a page, named from the root of the repository, with the table made,
// as Compare does. With update it writes made into the page. Figures have to be the same within share, 0: to the
// letter.
func Table(t testing.TB, update bool, page, command, made string, share float64) {
	t.Helper()
	root, err := root()
	if err == nil && update {
		err = Rewrite(filepath.Join(root, page), command, made)
	} else if err == nil {
		err = Compare(filepath.Join(root, page), command, made, share)
	}
	if err != nil {
		t.Errorf("%v\n(`%s` writes the table)", err, command)
	}
}

// root is the folder of the repository in which a test runs.
func root() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, found := os.Stat(filepath.Join(dir, "go.mod")); found == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("no go.mod in any folder above this one")
		}
	}
	return "", err
}

// Compare returns an error that shows each cell in which the table behind the command in the page differs from the
// table made. The columns of made are some or all of those of the page, in any order; the rows of both are the same
// in number. Where share is more than 0, two numbers are equal that differ by that share of the larger one, or by 2
// in the last written place; made may then have its rows in another order, by their first cell.
func Compare(page, command, made string, share float64) error {
	lines, from, to, err := find(page, command)
	if err != nil {
		return err
	}
	written, err := parse(lines[from:to])
	if err != nil {
		return fmt.Errorf("%s:%d: %w", page, from+1, err)
	}
	want, err := parse(strings.Split(strings.Trim(made, "\n"), "\n"))
	if err != nil {
		return err
	}
	if len(written.rows) != len(want.rows) {
		return fmt.Errorf("%s:%d: the table has %d rows, and `%s` makes %d:\n%s", page, from+1, len(written.rows), command, len(want.rows), made)
	}
	column, err := columns(written, want)
	if err != nil {
		return fmt.Errorf("%s:%d: %w", page, from+1, err)
	}
	var wrong []error
	for k, row := range want.rows {
		have := written.rows[k]
		if share > 0 && have[column[0]] != row[0] {
			if i := slices.IndexFunc(written.rows, func(r []string) bool { return r[column[0]] == row[0] }); i >= 0 {
				have = written.rows[i]
			}
		}
		for c, cell := range row {
			if got := have[column[c]]; !same(got, cell, share) {
				wrong = append(wrong,
					fmt.Errorf("%s:%d: row %q, column %q: the page says %q, and `%s` says %q", page, from+1, row[0], want.head[c], got, command, cell))
			}
		}
	}
	return errors.Join(wrong...)
}

// Rewrite writes the table made into the page, in place of the table behind the command. If made lacks columns of the
// page, these stay, and the rows must be as many as before.
func Rewrite(page, command, made string) error {
	lines, from, to, err := find(page, command)
	if err != nil {
		return err
	}
	rows := strings.Split(strings.Trim(made, "\n"), "\n")
	want, err := parse(rows)
	if err != nil {
		return err
	}
	written, err := parse(lines[from:to])
	if err != nil {
		return fmt.Errorf("%s:%d: %w", page, from+1, err)
	}
	if _, err := columns(want, written); err != nil {
		if rows, err = merged(written, want); err != nil {
			return fmt.Errorf("%s:%d: %w", page, from+1, err)
		}
		rows = slices.Concat(lines[from:from+2], rows)
	}
	return os.WriteFile(page, []byte(strings.Join(slices.Concat(lines[:from], rows, lines[to:]), "\n")), 0o644)
}

// merged are the rows of a table with the cells that another one has, too.
func merged(t, with table) (rows []string, err error) {
	column, err := columns(t, with)
	if err == nil && len(with.rows) != len(t.rows) {
		err = fmt.Errorf("the table has %d rows and columns of another source, and the command makes %d rows: write the "+
			"rows by hand first", len(t.rows), len(with.rows))
	}
	if err != nil {
		return nil, err
	}
	for k, cells := range t.rows {
		for c, cell := range with.rows[k] {
			cells[column[c]] = cell
		}
		rows = append(rows, strings.ReplaceAll("| "+strings.Join(cells, " | ")+" |", "|  |", "| |"))
	}
	return rows, nil
}

// find returns the lines of the page, and which of them are the table behind the command.
func find(page, command string) (lines []string, from, to int, err error) {
	data, err := os.ReadFile(page)
	if err != nil {
		return nil, 0, 0, err
	}
	lines = strings.Split(string(data), "\n")
	named := -1
	for k, line := range lines {
		if strings.Contains(line, "by `"+command+"`") {
			if named >= 0 {
				return nil, 0, 0, fmt.Errorf("%s:%d: a second table is by `%s`, after line %d", page, k+1, command, named+1)
			}
			named = k
		}
	}
	if named < 0 {
		return nil, 0, 0, fmt.Errorf("%s: no table is by `%s`: write that above the table, on one line", page, command)
	}
	for from = named; from < len(lines) && !strings.HasPrefix(lines[from], "|"); from++ {
	}
	for to = from; to < len(lines) && strings.HasPrefix(lines[to], "|"); to++ {
	}
	if from == len(lines) {
		return nil, 0, 0, fmt.Errorf("%s:%d: no table comes behind `%s`", page, named+1, command)
	}
	return lines, from, to, nil
}

type table struct {
	head []string
	rows [][]string
}

func parse(lines []string) (t table, err error) {
	for k, line := range lines {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case k == 0:
			t.head = cells
		case len(cells) != len(t.head):
			return t, fmt.Errorf("row %q has %d cells, the table %d columns", line, len(cells), len(t.head))
		case k > 1:
			t.rows = append(t.rows, cells)
		}
	}
	if len(t.rows) == 0 {
		return t, fmt.Errorf("a table without rows: %q", lines)
	}
	return t, nil
}

// columns returns in which column of a each column of b is. Two columns of one name are taken in order.
func columns(a, b table) (at []int, err error) {
	for _, name := range b.head {
		k := -1
		for i, other := range a.head {
			if other == name && !slices.Contains(at, i) {
				k = i
				break
			}
		}
		if k < 0 {
			return nil, fmt.Errorf("the table has no column %q, but %q", name, a.head)
		}
		at = append(at, k)
	}
	return at, nil
}

var number = regexp.MustCompile(`\d+(?:\.\d+)?`)

// same compares two cells: their text, and number by number what is in it.
func same(a, b string, share float64) bool {
	if a == b || share == 0 {
		return a == b
	}
	if number.ReplaceAllString(a, "0") != number.ReplaceAllString(b, "0") {
		return false
	}
	of := number.FindAllString(b, -1)
	for k, text := range number.FindAllString(a, -1) {
		x, _ := strconv.ParseFloat(text, 64)
		y, _ := strconv.ParseFloat(of[k], 64)
		place := 0
		if _, fraction, ok := strings.Cut(text, "."); ok {
			place = len(fraction)
		}
		if math.Abs(x-y) > max(share*max(x, y), 2.001*math.Pow10(-place)) {
			return false
		}
	}
	return true
}
