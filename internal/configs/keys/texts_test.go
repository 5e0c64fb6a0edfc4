package keys_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fluentps/internal/configs/diag"
	"fluentps/internal/configs/keys"
)

var (
	keyInText = regexp.MustCompile(
		`\b(?:cluster|data|model|train|evaluate|device|shards|send|payload|work|local|stall|checkpoint|metrics|simulate|sync|faults|baseline)(?:\[[0-9a-z]*\])?(?:\.[a-z_0-9]+(?:\[[0-9]*\])?)+`)
	indexText = regexp.MustCompile(`\[[0-9a-z]*\]`)
	// noKeys are files, fields of a checkpoint, a section of an object file, and a key of earlier versions.
	noKeys = regexp.MustCompile(`\.(csv|jsonl|prom|inc|json|go|py)$|^work\.assignment\.|^data\.rel\.|^simulate\.noise`)
)

// Texts of all packages name only keys that exist: a key that was renamed is renamed in every error, hint and page that the program prints.
func TestTextsNameKeysThatExist(t *testing.T) {
	known := &keys.KnownPaths{}
	known.Fill()
	named := 0
	err := filepath.WalkDir("../../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		var s scanner.Scanner
		s.Init(files.AddFile(path, files.Base(), len(src)), src, nil, 0)
		for {
			at, tok, text := s.Scan()
			if tok == token.EOF {
				return nil
			}
			if tok != token.STRING {
				continue
			}
			for _, key := range keyInText.FindAllString(text, -1) {
				if noKeys.MatchString(key) {
					continue
				}
				named++
				if _, is := known.IsText[indexText.ReplaceAllString(key, "[]")]; !is {
					t.Errorf("%v: there is no key %s: %s", files.Position(at), key, diag.Clip(text))
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if named < 300 {
		t.Errorf("only %d keys are named", named)
	}
}
