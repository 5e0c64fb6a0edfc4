// Package tidy holds the rules of this repository as tests. A rule is a function from a tree of files to the problems that it finds.
// It runs on the repository, and on a small bad tree in which it must find the expected problems.
package tidy

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"fluentps/ps/scheme"
)

// tree is the input of the rules: every shipped file, read and, if it is Go, parsed.
type tree struct {
	fsys    fs.FS
	fset    *token.FileSet
	files   []*file // in the order of their names
	schemes []scheme.Entry
}

type file struct {
	name string // from the root, with slashes
	dir  string // "." at the root
	mode fs.FileMode
	data []byte
	text bool // UTF-8 without NUL
	// ast is set for Go files outside testdata that parse; broken holds the error of those that do not.
	ast    *ast.File
	broken error
}

// rule is one law of the repository. bad is a tree that breaks it, want the problems that it must report there.
type rule struct {
	name    string
	check   func(*tree) []string
	bad     fstest.MapFS
	schemes []scheme.Entry // the table that goes with bad
	want    []string
}

var rules = []rule{
	goParses, allowedImports, tableIsTrue, importsGoDown, fewFolders, lawsAreHeld, cgoBehindTags, testingStaysInTests,
	pureImports, pureTime, pureRandom, pureFlow, pureOutput,
	fileSizes, functionSizes, structSizes, roomSizes, lineWidths, exits,
	topLevel, textHygiene, leftovers, strangeNames, blobs, scripts,
	links, pageSizes, pagesAreTrue, commandsAreTrue,
	figuresHaveASource, examplesMentioned, sendRows, schemesComplete, policiesInTheirTable, envIsTrue,
}

func TestRepository(t *testing.T) {
	repository := load(t, os.DirFS("../.."))
	repository.schemes = scheme.All
	if len(repository.files) < 20 || repository.find("go.mod") == nil {
		t.Fatalf("the tree at ../.. holds %d files: this is not the repository", len(repository.files))
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, problem := range r.check(repository) {
				t.Error(problem)
			}
		})
	}
}

func TestRulesFindFault(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			bad := load(t, r.bad)
			bad.schemes = r.schemes
			got := strings.Join(r.check(bad), "\n")
			if want := strings.Join(r.want, "\n"); got != want || want == "" {
				t.Errorf("problems found:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// ignored says whether .gitignore keeps a file out of the repository, or whether it belongs to Git itself, such as .git, which is a
// file in a worktree. The rules do not apply to such files.
func ignored(name string, entry fs.DirEntry) bool {
	if entry.IsDir() {
		return name == ".git" || name == "bin" || name == "build" || name == "runs"
	}
	return name == ".git" || strings.HasSuffix(name, ".test") || strings.HasSuffix(name, ".prof")
}

func load(t *testing.T, fsys fs.FS) *tree {
	t.Helper()
	tr := &tree{fsys: fsys, fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ignored(name, entry) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		f := &file{name: name, dir: path.Dir(name), mode: info.Mode(), data: data}
		f.text = utf8.Valid(data) && !bytes.ContainsRune(data, 0)
		if strings.HasSuffix(name, ".go") && !f.inTestdata() {
			f.ast, f.broken = parser.ParseFile(tr.fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
			if f.broken != nil {
				f.ast = nil
			}
		}
		tr.files = append(tr.files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func (tr *tree) find(name string) *file {
	for _, f := range tr.files {
		if f.name == name {
			return f
		}
	}
	return nil
}

// goFiles lists the parsed Go files that are not tests.
func (tr *tree) goFiles() []*file {
	var files []*file
	for _, f := range tr.files {
		if f.ast != nil && !f.isTest() {
			files = append(files, f)
		}
	}
	return files
}

func (tr *tree) line(p token.Pos) int { return tr.fset.Position(p).Line }

func (f *file) isTest() bool     { return strings.HasSuffix(f.name, "_test.go") }
func (f *file) inTestdata() bool { return strings.Contains("/"+f.dir+"/", "/testdata/") }
func (f *file) lines() []string  { return strings.Split(string(f.data), "\n") }

var generatedMark = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func (f *file) generated() bool { return generatedMark.Match(f.data) }

var goParses = rule{
	name: "go-parses",
	check: func(tr *tree) (problems []string) {
		for _, f := range tr.files {
			if f.broken != nil {
				problems = append(problems, f.broken.Error())
			}
		}
		return problems
	},
	bad:  fstest.MapFS{"a.go": {Data: []byte("package a\nfunc {}\n")}, "testdata/b.go": {Data: []byte("package\n")}},
	want: []string{"a.go:2:6: expected 'IDENT', found '{'"},
}
