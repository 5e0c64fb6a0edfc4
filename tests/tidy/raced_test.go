package tidy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Stage race runs the tests of internal/rank/runtime that tests/raced.txt lists, by name: a test that is renamed must not leave it unseen.
func TestRacedTestsExist(t *testing.T) {
	list, err := os.ReadFile("../raced.txt")
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	files, err := filepath.Glob("../../internal/rank/runtime/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no tests in internal/rank/runtime", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(text)
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		name := strings.TrimSpace(line)
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if !strings.Contains(sources.String(), "func "+name+"(t *testing.T)") {
			t.Errorf("tests/raced.txt lists %s, and internal/rank/runtime has no such test: give its present name, or remove the line", name)
		}
		if seen[name] {
			t.Errorf("tests/raced.txt lists %s twice", name)
		}
		seen[name] = true
	}
	if len(seen) == 0 {
		t.Error("tests/raced.txt lists no test")
	}
}
