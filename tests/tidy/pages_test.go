package tidy

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"

	"fluentps/ps/scheme"
)

// onePage are the pages that a newcomer reads from the first line to the last, and their lines at most, beside the rows that
// schemes have there: so a new scheme makes no page too long.
var onePage = map[string]int{"README.md": 130, architecture: 150}

var pageSizes = rule{
	name: "page-sizes",
	check: func(tr *tree) (problems []string) {
		for _, name := range slices.Sorted(maps.Keys(onePage)) {
			f := tr.find(name)
			if f == nil {
				problems = append(problems, name+": missing")
				continue
			}
			n := bytes.Count(f.data, []byte("\n"))
			for _, e := range tr.schemes {
				n -= bytes.Count(f.data, []byte("\n| `"+e.Name+"` | "+e.Short+" |\n"))
			}
			if most := onePage[name]; n > most {
				problems = append(problems, fmt.Sprintf("%s: %d lines beside the rows of schemes, at most %d: details go beside their code",
					name, n, most))
			}
		}
		return problems
	},
	bad: fstest.MapFS{"README.md": {Data: append([]byte("# x\n| `a` | does a |\n"),
		bytes.Repeat([]byte("\n"), 130)...)}},
	schemes: []scheme.Entry{{Name: "a", Short: "does a"}},
	want: []string{
		"README.md: 131 lines beside the rows of schemes, at most 130: details go beside their code",
		architecture + ": missing",
	},
}

// placeholder stands for a name in a path, as in ps/scheme/testdata/NAME.
var placeholder = regexp.MustCompile(`\b(NAME|FILE|DIR|SCHEME)\b`)

// pagesAreTrue: what a page names in code exists: a file or a folder, a test, a target of make. The compiler reads none of it.
var pagesAreTrue = rule{
	name: "pages-are-true",
	check: func(tr *tree) (problems []string) {
		makefile := "\n"
		if f := tr.find("Makefile"); f != nil {
			makefile += string(f.data)
		}
		for _, f := range tr.files {
			if path.Ext(f.name) != ".md" || f.inTestdata() {
				continue
			}
			for _, c := range codeOf(f) {
				complain := func(what string) {
					problems = append(problems, fmt.Sprintf("%s:%d: there is no %s", f.name, c.line, what))
				}
				for _, m := range namedTest.FindAllStringSubmatch("`"+c.text+"`", -1) {
					if !declaresTest(tr, m[1], m[2], true) {
						complain(m[2] + " in " + m[1])
					}
				}
				for _, m := range ownPath.FindAllStringSubmatch(c.text, -1) {
					if strings.Contains(m[1], ".Test") || placeholder.MatchString(m[1]) {
						continue
					}
					if _, err := fs.Stat(tr.fsys, m[1]); err != nil {
						complain(m[1])
					}
				}
				for _, m := range makeTarget.FindAllStringSubmatch(c.text, -1) {
					if !strings.Contains(makefile, "\n"+m[1]+":") {
						complain("make " + m[1])
					}
				}
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"Makefile":                {Data: []byte("test: build\n")},
		"internal/core/a_test.go": {Data: []byte("package core\nfunc TestA() {}\n")},
		"internal/core/b.go":      {Data: []byte("package core\nfunc TestB() {}\n")},
		"a.md": {Data: []byte("`internal/core.TestA` `internal/core.TestB` `internal/core/b.go` " +
			"internal/core/c.go `internal/core/NAMES.txt` `ps/gone/NAME`\n" +
			"`internal/core/c.go`, `make test`, `make toast`, make do\n```\n" +
			"bin/x run configs/a.yaml ./internal/core/ /usr/ps/core/d\n```\nps/gone\n")},
	},
	want: []string{
		"a.md:1: there is no TestB in internal/core",
		"a.md:1: there is no internal/core/NAMES.txt",
		"a.md:2: there is no internal/core/c.go",
		"a.md:2: there is no make toast",
		"a.md:4: there is no configs/a.yaml",
	},
}

// A command that runs tests, up to the end of its code, and the packages that it names.
var (
	goTests   = regexp.MustCompile("\\bgo test (?:'[^'\n]*'|\"[^\"\n]*\"|[^\n`;|&>'\"])*")
	goPackage = regexp.MustCompile(`\s\./([a-z][a-zA-Z0-9_/]*)(\.\.\.)?`)
	goRun     = regexp.MustCompile(`\s-run ['"]?\^?\(?((?:Test\w+\|?)+)`) // its tests, if it names some
)

// commandsAreTrue: a package that a page, a script or an error tells somebody to test has tests, and those that it names. A folder or a
// test that has moved may have left another one behind, and go test runs nothing then and says ok.
var commandsAreTrue = rule{
	name: "commands-are-true",
	check: func(tr *tree) (problems []string) {
		tested := map[string]bool{}
		for _, f := range tr.files {
			tested[f.dir] = tested[f.dir] || f.isTest()
		}
		for _, f := range tr.files {
			if !slices.Contains([]string{".go", ".md", ".sh"}, path.Ext(f.name)) || f.inTestdata() || f.dir == "tests/tidy" {
				continue
			}
			for k, line := range f.lines() {
				for _, command := range goTests.FindAllString(line, -1) {
					var dirs []string
					for _, m := range goPackage.FindAllStringSubmatch(command, -1) {
						dir := path.Clean(m[1])
						if m[2] == "" && !tested[dir] {
							problems = append(problems, fmt.Sprintf("%s:%d: go test ./%s, which has no tests", f.name, k+1, dir))
						} else if m[2] == "" {
							dirs = append(dirs, dir)
						}
					}
					if m := goRun.FindStringSubmatch(command); m != nil && len(dirs) > 0 {
						for name := range strings.SplitSeq(m[1], "|") {
							if !slices.ContainsFunc(dirs, func(dir string) bool { return declaresTest(tr, dir, name, false) }) {
								problems = append(problems, fmt.Sprintf("%s:%d: there is no %s in ./%s", f.name, k+1, name, strings.Join(dirs, " ./")))
							}
						}
					}
				}
			}
		}
		return problems
	},
	bad: fstest.MapFS{
		"internal/a/a_test.go": {Data: []byte("package a\n\nconst out = \"go test ./a -update, or go test -run X ./internal/a/\"\n")},
		"a/a.yaml":             {Data: []byte("x\n")},
		"a.md":                 {Data: []byte("`go test ./internal/a ./b -v` see `./c`; go test ./... ./a/...\n")},
		"b.sh":                 {Data: []byte("go test -run '^(TestA|TestB)$' ./internal/a | tail\ngo test -run TestC ./internal/...\n")},
		"internal/a/b_test.go": {Data: []byte("package a\n\nfunc TestAll(t *testing.T) {}\n")},
	},
	want: []string{"a.md:1: go test ./b, which has no tests", "b.sh:1: there is no TestB in ./internal/a",
		"internal/a/a_test.go:3: go test ./a, which has no tests"},
}

// code is one piece of code of a page: a line of a fenced block, or what stands between backticks.
type code struct {
	line int
	text string
}

func codeOf(f *file) (codes []code) {
	fenced := false
	for k, line := range f.lines() {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced:
			codes = append(codes, code{k + 1, line})
		default:
			for _, m := range inlineCode.FindAllString(line, -1) {
				codes = append(codes, code{k + 1, strings.Trim(m, "`")})
			}
		}
	}
	return codes
}
