package tidy

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing/fstest"
)

// aFigure is a cell that holds nothing but numbers and units.
var aFigure = regexp.MustCompile(`^(at most )?[-~]?\d[\d., ()/%+*x-]*( ?(e-?\d+|s|ms|us|of \d+|never))*$`)

// source says where the figures of a table come from: what simulates or computes them, or when and where they were
// measured, each with a command.
var source = regexp.MustCompile("(?:[Ss]imulated|[Cc]omputed|Measured (?:before )?20\\d\\d-\\d\\d-\\d\\d on [^`]*[^` ]) by `([^`]+)`")

var goTest = regexp.MustCompile(`^go test \./(\S+) -run (Test\w+) -update$`)

// figuresHaveASource: above a table of figures stands, on a line of its section, what makes it. Figures that are
// simulated or computed are held to it by a test or a script.
var figuresHaveASource = rule{
	name: "figures-have-a-source",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.files {
			if path.Ext(f.name) != ".md" || f.inTestdata() {
				continue
			}
			lines, above := f.lines(), "" // above: what the section says before the table
			for k := 0; k < len(lines); k++ {
				switch line := lines[k]; {
				case strings.HasPrefix(line, "#"):
					above = ""
				case !strings.HasPrefix(line, "|"):
					above += line + "\n"
				default:
					from := k
					for k+1 < len(lines) && strings.HasPrefix(lines[k+1], "|") {
						k++
					}
					if table := lines[from : k+1]; ofFigures(table) {
						if what := unheld(tr, f, above); what != "" {
							problems = append(problems, fmt.Sprintf("%s:%d: %s", f.name, from+1, what))
						}
					}
					above = ""
				}
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"ps/a/a_test.go": {Data: []byte("package a\nfunc TestA() { pagetest.Table(t, *update, \"a.md\", \"go test " +
			"./ps/a -run TestA -update\", made, 0) }\nfunc TestB() {}\n")},
		"tests/accept/b/c.sh":  {Data: []byte("table a.md 0 \"$TMP/table\"\n")},
		"tests/accept/b/no.sh": {Data: []byte("echo\n")},
		"a.md": {Data: []byte("# A\n" + numbers + "## B\nSimulated by `go test ./ps/a -run TestA -update`:\n\n" + numbers + "\n" + numbers +
			"\nComputed by `go test ./ps/a -run TestB -update`:\n" + numbers + "\nSimulated by `tests/accept/b/c.sh`:\n" +
			numbers + "\nSimulated by `tests/accept/b/no.sh`:\n" + numbers +
			"\nMeasured 2026-11-01 on a machine by `anything`:\n" + numbers + "\nMeasured by `anything`:\n" + numbers +
			"\n| exit code | meaning |\n|---|---|\n| 0 | done |\n| 1 | failed |\n| 2 | a mistake |\n| 3 | a warning |\n")},
	},
	want: []string{
		"a.md:2: " + noSource,
		"a.md:14: " + noSource,
		"a.md:20: no test of ps/a holds the table of a.md to `go test ./ps/a -run TestB -update`: call pagetest.Table",
		"a.md:32: tests/accept/b/no.sh does not hold the table: call table a.md",
		"a.md:44: " + noSource,
	},
}

const (
	numbers  = "| x | a | b |\n|---|---|---|\n| y | 1.5 | 2 |\n| z | 3 % | 4 |\n"
	noSource = "a table of figures: say above it, on one line, \"Simulated by `COMMAND`\" (or Computed), or " +
		"\"Measured YYYY-MM-DD on MACHINE by `COMMAND`\""
)

// ofFigures: a quarter of the cells behind the first column, four at least, are figures.
func ofFigures(table []string) bool {
	figures, cells := 0, 0
	for _, row := range table[min(2, len(table)):] {
		for _, cell := range strings.Split(strings.Trim(row, "|"), "|")[1:] {
			cells++
			if aFigure.MatchString(strings.Trim(cell, " `")) {
				figures++
			}
		}
	}
	return figures >= 4 && 4*figures >= cells
}

// unheld returns what is missing where a table of the page is not held to what makes it.
func unheld(tr *tree, page *file, above string) string {
	m := source.FindStringSubmatch(strings.ReplaceAll(above, "\n", " "))
	if m == nil {
		return noSource
	}
	if strings.HasPrefix(m[0], "Measured") {
		return ""
	}
	if test := goTest.FindStringSubmatch(m[1]); test != nil {
		call := regexp.MustCompile(regexp.QuoteMeta(strconv.Quote(page.name)) + `,\s+` + regexp.QuoteMeta(strconv.Quote(m[1])))
		for _, f := range tr.files {
			if f.dir == test[1] && f.isTest() && call.Match(f.data) {
				return ""
			}
		}
		return fmt.Sprintf("no test of %s holds the table of %s to `%s`: call pagetest.Table", test[1], page.name, m[1])
	}
	if f := tr.find(m[1]); f != nil && strings.Contains(string(f.data), "table "+page.name) {
		return ""
	}
	return m[1] + " does not hold the table: call table " + page.name
}
