package tidy

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"
)

const (
	module       = "fluentps"
	allowed      = "tests/tidy/imports.md"
	architecture = "ps/ARCHITECTURE.md"
	laws         = "ps/LAWS.md"
	gompi        = "github.com/sbromberger/gompi"
)

// row is one line of the table of allowed imports: the packages that the non-test files of a package may import in addition to the
// standard library. ours: our own packages; others: modules, and "C" for cgo.
type row struct {
	line         int
	ours, others []string
}

var backticked = regexp.MustCompile("`([^`]+)`")

// importTable reads the table of allowed imports.
func importTable(tr *tree) (rows map[string]row, problems []string) {
	f := tr.find(allowed)
	if f == nil {
		return nil, []string{allowed + ": missing; it holds the table of allowed imports"}
	}
	rows = map[string]row{}
	for k, line := range f.lines() {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|"), "|")
		if len(cells) < 3 {
			problems = append(problems, fmt.Sprintf("%s:%d: a row needs three cells: package, ours, others", f.name, k+1))
			continue
		}
		name := ticked(cells[0])[0]
		if _, twice := rows[name]; twice {
			problems = append(problems, fmt.Sprintf("%s:%d: a second row for %s", f.name, k+1, name))
		}
		rows[name] = row{line: k + 1, ours: ticked(cells[1]), others: ticked(cells[2])}
	}
	if len(rows) == 0 {
		problems = append(problems, allowed+": no row of the table of allowed imports")
	}
	return rows, problems
}

func ticked(cell string) (words []string) {
	for _, m := range backticked.FindAllStringSubmatch(cell, -1) {
		words = append(words, m[1])
	}
	return words
}

// imports yields each import of f with its line.
func imports(tr *tree, f *file, yield func(line int, importPath string)) {
	for _, spec := range f.ast.Imports {
		if importPath, err := strconv.Unquote(spec.Path.Value); err == nil {
			yield(tr.line(spec.Pos()), importPath)
		}
	}
}

func thirdParty(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".")
}

// rowOf is the name of the row that a package has in the table: its own, or one such as `kernels/*`, which is that of all
// packages in the folder that have none.
func rowOf(rows map[string]row, name string) string {
	if _, own := rows[name]; own {
		return name
	}
	return path.Join(path.Dir(name), "*")
}

var allowedImports = rule{
	name: "allowed-imports",
	check: func(tr *tree) (problems []string) {
		rows, problems := importTable(tr)
		unlisted := map[string]bool{}
		for _, f := range tr.goFiles() {
			r, listed := rows[rowOf(rows, f.dir)]
			if !listed {
				if !unlisted[f.dir] {
					problems = append(problems, fmt.Sprintf("%s: not in the table of %s", f.dir, allowed))
				}
				unlisted[f.dir] = true
				continue
			}
			imports(tr, f, func(line int, importPath string) {
				name, ours := strings.CutPrefix(importPath, module+"/")
				switch {
				case ours && slices.ContainsFunc(r.ours, func(p string) bool { return p == name || p == rowOf(rows, name) || p == "*" }):
				case !ours && !thirdParty(importPath) && importPath != "C":
				case !ours && slices.ContainsFunc(r.others, func(m string) bool {
					return importPath == m || strings.HasPrefix(importPath, m+"/")
				}):
				default:
					problems = append(problems, fmt.Sprintf("%s:%d: %s may not import %s (%s:%d)", f.name, line, f.dir, importPath, allowed, r.line))
				}
			})
		}
		return problems
	},
	bad: fstest.MapFS{
		allowed: {Data: []byte("# Allowed imports\n| package | ours | others |\n|---|---|---|\n| `a` | `b` | `x.org/y` " +
			"|\n| `b` | | |\n| `b` | | |\n| `d` |\n" +
			"| `e` | `e/*` | |\n| `e/*` | `e/*` `e/own` | |\n| `e/own` | | |\n| `e/other` | | |\n")},
		"a/a.go": {Data: []byte("package a\nimport \"fluentps/b\"\nimport \"os\"\nimport \"x.org/y/z\"\nimport " +
			"\"x.org/yz\"\nimport \"C\"\n")},
		"b/b.go":      {Data: []byte("package b\nimport \"fluentps/a\"\n")},
		"b/b_test.go": {Data: []byte("package b\nimport \"fluentps/c\"\n")},
		"c/c.go":      {Data: []byte("package c\n")},
		"c/d.go":      {Data: []byte("package c\n")},
		"e/e.go":      {Data: []byte("package e\nimport \"fluentps/e/x\"\nimport \"fluentps/e/own\"\n")},
		"e/x/x.go": {Data: []byte("package x\nimport \"fluentps/e/y\"\nimport \"fluentps/e/own\"\nimport " +
			"\"fluentps/e/other\"\nimport \"fluentps/e\"\n")},
		"e/own/o.go": {Data: []byte("package own\nimport \"fluentps/e/x\"\n")},
		"e/x/z/z.go": {Data: []byte("package z\n")},
	},
	want: []string{
		"tests/tidy/imports.md:6: a second row for b",
		"tests/tidy/imports.md:7: a row needs three cells: package, ours, others",
		"a/a.go:5: a may not import x.org/yz (tests/tidy/imports.md:4)",
		"a/a.go:6: a may not import C (tests/tidy/imports.md:4)",
		"b/b.go:2: b may not import fluentps/a (tests/tidy/imports.md:6)",
		"c: not in the table of tests/tidy/imports.md",
		"e/e.go:3: e may not import fluentps/e/own (tests/tidy/imports.md:8)",
		"e/own/o.go:2: e/own may not import fluentps/e/x (tests/tidy/imports.md:10)",
		"e/x/x.go:4: e/x may not import fluentps/e/other (tests/tidy/imports.md:9)",
		"e/x/x.go:5: e/x may not import fluentps/e (tests/tidy/imports.md:9)",
		"e/x/z: not in the table of tests/tidy/imports.md",
	},
}

// tableIsTrue: the packages in the table must exist, and a row lists what its package imports and no more, so that each new arrow is seen.
var tableIsTrue = rule{
	name: "import-table-is-true",
	check: func(tr *tree) (problems []string) {
		rows, problems := importTable(tr)
		packages, used := map[string]bool{"*": true}, map[string]map[string]bool{}
		for _, f := range tr.goFiles() {
			name := rowOf(rows, f.dir)
			packages[f.dir], packages[name] = true, true
			if used[name] == nil {
				used[name] = map[string]bool{"*": true}
			}
			imports(tr, f, func(_ int, importPath string) {
				of := strings.TrimPrefix(importPath, module+"/")
				used[name][of], used[name][rowOf(rows, of)] = true, true
			})
		}
		names := make([]string, 0, len(rows))
		for name := range rows {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			for _, p := range append([]string{name}, rows[name].ours...) {
				if !packages[p] {
					problems = append(problems, fmt.Sprintf("%s:%d: there is no package %s", allowed, rows[name].line, p))
				} else if p != name && !used[name][p] {
					problems = append(problems, fmt.Sprintf("%s:%d: %s does not import %s", allowed, rows[name].line, name, p))
				}
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		allowed:    {Data: []byte("# Allowed imports\n| `a` | `b` `c` | |\n| `d` | | |\n| `e/*` | `f/*` | |\n| `f/*` | | |\n")},
		"a/a.go":   {Data: []byte("package a\n")},
		"b/b.go":   {Data: []byte("package b\n")},
		"e/x/x.go": {Data: []byte("package x\n")},
	},
	want: []string{
		"tests/tidy/imports.md:2: a does not import b",
		"tests/tidy/imports.md:2: there is no package c",
		"tests/tidy/imports.md:3: there is no package d",
		"tests/tidy/imports.md:4: there is no package f/*",
		"tests/tidy/imports.md:5: there is no package f/*",
	},
}

var namedTest = regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9_]+)`")

// lawsAreHeld: each row of a table of laws names at least one test. That the tests exist is a rule of all pages.
var lawsAreHeld = rule{
	name: "laws-are-held",
	check: func(tr *tree) (problems []string) {
		f := tr.find(laws)
		if f == nil {
			return []string{laws + ": missing; it holds the tables of laws"}
		}
		rows, inside := 0, false
		for k, line := range f.lines() {
			inside = strings.HasPrefix(line, "| law |") || inside && strings.HasPrefix(line, "|")
			if !inside || strings.HasPrefix(line, "| law |") || strings.HasPrefix(line, "|---") {
				continue
			}
			rows++
			if !namedTest.MatchString(line) {
				problems = append(problems, fmt.Sprintf("%s:%d: a law that names no test, as in `internal/core.TestX`", f.name, k+1))
			}
		}
		if rows == 0 {
			problems = append(problems, laws+": no table that begins with | law |")
		}
		return problems
	},
	bad: fstest.MapFS{
		laws: {Data: []byte("# Laws\n| law | held by |\n|---|---|\n| a | `internal/core.TestA` |\n| b | |\n\n| note |\n| c |\n")},
	},
	want: []string{"ps/LAWS.md:5: a law that names no test, as in `internal/core.TestX`"},
}

// declaresTest says whether a package has a test of that name, or if it need not be whole, one whose name begins so.
func declaresTest(tr *tree, dir, name string, whole bool) bool {
	return slices.ContainsFunc(tr.files, func(f *file) bool {
		return f.dir == dir && f.isTest() && f.ast != nil && slices.ContainsFunc(f.ast.Decls, func(decl ast.Decl) bool {
			fn, ok := decl.(*ast.FuncDecl)
			return ok && fn.Recv == nil && (fn.Name.Name == name || !whole && strings.HasPrefix(fn.Name.Name, name))
		})
	})
}

// cgoBehindTags keeps plain `go build ./...` free of C: a file that needs a C library is built only on request.
var cgoBehindTags = rule{
	name: "cgo-behind-tags",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.files {
			if f.ast == nil {
				continue
			}
			imports(tr, f, func(line int, importPath string) {
				if importPath != "C" && !strings.HasPrefix(importPath, gompi) {
					return
				}
				if builtByDefault(f) {
					problems = append(problems,
						fmt.Sprintf("%s:%d: imports %s without a build tag such as `//go:build mpi`", f.name, line, path.Base(importPath)))
				}
			})
		}
		return problems
	},
	bad: fstest.MapFS{
		"a/a.go": {Data: []byte("package a\n\nimport \"C\"\n")},
		"a/b.go": {Data: []byte("//go:build linux && cgo\n\npackage a\n\nimport \"" + gompi + "\"\n")},
		"a/c.go": {Data: []byte("//go:build mpi && linux\n\npackage a\n\nimport \"C\"\n")},
	},
	want: []string{
		"a/a.go:3: imports C without a build tag such as `//go:build mpi`",
		"a/b.go:5: imports gompi without a build tag such as `//go:build mpi`",
	},
}

// builtByDefault says whether plain `go build` on Linux with a C compiler takes the file.
func builtByDefault(f *file) bool {
	for _, group := range f.ast.Comments {
		for _, comment := range group.List {
			if expr, err := constraint.Parse(comment.Text); err == nil && constraint.IsGoBuild(comment.Text) {
				return expr.Eval(func(tag string) bool {
					return tag == "linux" || tag == "unix" || tag == "amd64" || tag == "cgo" || tag == "gc" || strings.HasPrefix(tag, "go1.")
				})
			}
		}
	}
	return true
}

// testingStaysInTests allows package testing outside _test.go files only in conformance suites (commtest, ...).
var testingStaysInTests = rule{
	name: "testing-stays-in-tests",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.goFiles() {
			imports(tr, f, func(line int, importPath string) {
				if importPath == "testing" && !strings.HasSuffix(f.dir, "test") {
					problems = append(problems, fmt.Sprintf("%s:%d: imports testing; only tests and packages named ...test do", f.name, line))
				}
			})
		}
		return problems
	},
	bad: fstest.MapFS{
		"a/a.go":         {Data: []byte("package a\nimport \"testing\"\n")},
		"a/atest/a.go":   {Data: []byte("package atest\nimport \"testing\"\n")},
		"a/some_test.go": {Data: []byte("package a\nimport \"testing\"\n")},
	},
	want: []string{"a/a.go:2: imports testing; only tests and packages named ...test do"},
}
