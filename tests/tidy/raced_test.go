package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// less marks in tests/raced.txt a test that runs less under the race detector.
const less = "less"

// Stage race runs the tests of internal/rank/runtime that tests/raced.txt lists, by name: a test that is renamed must not leave it
// unseen. Stage pure leaves out those without a mark, so each that asks whether the detector is on has it.
func TestRacedTestsExist(t *testing.T) {
	list, err := os.ReadFile("../raced.txt")
	if err != nil {
		t.Fatal(err)
	}
	asking, tests := askForTheDetector(t, "../../internal/rank/runtime")
	seen := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		name, mark, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		switch {
		case !tests[name]:
			t.Errorf("tests/raced.txt lists %s, and internal/rank/runtime has no such test: give its present name, or remove it", name)
		case seen[name]:
			t.Errorf("tests/raced.txt lists %s twice", name)
		case asking[name] && mark != less:
			t.Errorf("%s asks whether the race detector is on: mark it \"%s %s\" in tests/raced.txt, and stage pure runs it whole", name, name, less)
		case !asking[name] && mark != "":
			t.Errorf("tests/raced.txt marks %s %q, and the test never asks whether the race detector is on: remove it", name, mark)
		}
		seen[name] = true
	}
	if len(seen) == 0 || len(asking) == 0 {
		t.Errorf("tests/raced.txt lists %d tests, and %d functions of internal/rank/runtime ask for the detector", len(seen), len(asking))
	}
}

// askForTheDetector finds in the test files of a folder the functions that ask whether the race detector is on, by themselves or
// through a declaration that they name, and the names of all tests.
func askForTheDetector(t *testing.T, folder string) (asking, tests map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{} // what each declaration names
	tests = map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		detectorOnly := strings.HasSuffix(path, "race_test.go") // its constants have other values under the detector
		for _, d := range file.Decls {
			for _, name := range declared(d) {
				tests[name] = tests[name] || strings.HasPrefix(name, "Test")
				ast.Inspect(d, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						names[name] = append(names[name], id.Name)
					}
					return true
				})
				if detectorOnly {
					names[name] = append(names[name], "UnderRace")
				}
			}
		}
	}
	asking = map[string]bool{"UnderRace": true}
	for grown := true; grown; {
		grown = false
		for name, of := range names {
			for _, other := range of {
				if asking[other] && !asking[name] {
					asking[name], grown = true, true
				}
			}
		}
	}
	return asking, tests
}

// declared is the names that a declaration on the first level of a file gives; a method counts as its own name.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		names = append(names, d.Name.Name)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, id := range s.Names {
					names = append(names, id.Name)
				}
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			}
		}
	}
	return names
}
