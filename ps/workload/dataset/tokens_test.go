package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A text is a set of its bytes. Test rows are those of the end of the text, or of another file, and share no token with training rows.
func TestATextIsTokens(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("to be, or not to be: ", 20)
	path, test := filepath.Join(dir, "text"), filepath.Join(dir, "test")
	for p, s := range map[string]string{path: text, test: "be or not be~"} {
		if err := os.WriteFile(p, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec := Spec{Set: tokensSet, Path: path, Binary: Binary{Tokens: Tokens{Window: 4, Stride: 1, Type: "uint8"}}}
	rows := func(table Table) (all []string) {
		x, y := make([]float32, table.Cols()), make([]int32, 1)
		for r := range table.Rows() {
			table.Fill(x, y, []int32{int32(r)})
			row := ""
			for i, v := range x {
				if v == 1 {
					row += string(rune(i % (table.Cols() / 4)))
				}
			}
			all = append(all, row+string(rune(y[0])))
		}
		return all
	}
	windows := func(s string) (all []string) {
		for at := range len(s) - 4 {
			all = append(all, s[at:at+5])
		}
		return all
	}
	split := len(text) - len(text)/5
	for name, c := range map[string]struct {
		change      func(s *Spec)
		train, test string
		classes     int
	}{
		"alone": {func(*Spec) {}, text, "", 'u'},
		"split": {func(s *Spec) { s.Split.Test = 0.2 }, text[:split], text[split:], 'u'},
		"test":  {func(s *Spec) { s.Test = test }, text, "be or not be~", '~' + 1},
	} {
		s := spec
		c.change(&s)
		set, err := Load(s)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(rows(set.Train), "|") != strings.Join(windows(c.train), "|") || set.Classes != c.classes {
			t.Errorf("%s: %d classes, rows %q", name, set.Classes, rows(set.Train)[:3])
		}
		if c.test != "" && strings.Join(rows(set.Test), "|") != strings.Join(windows(c.test), "|") || c.test == "" && set.Test.Rows() != 0 {
			t.Errorf("%s: test rows %q", name, rows(set.Test))
		}
		if set.ClassNames['b'] != "'b'" || set.ClassNames['\n'] != `'\n'` {
			t.Errorf("%s: classes are called %q", name, set.ClassNames['b'])
		}
		if total := set.MappedBytes(); total < int64(len(text)-5) {
			t.Errorf("%s: %d bytes are mapped", name, total)
		}
		r, err := set.Describe()
		if err != nil || r.Train.Counts['t'] == 0 || r.Files[0].Whole == "" {
			t.Errorf("%s: %+v, %v", name, r.Train, err)
		}
	}
	sums := map[string]bool{}
	for _, change := range []func(s *Spec){func(*Spec) {}, func(s *Spec) { s.Binary.Tokens.Window = 5 },
		func(s *Spec) { s.Binary.Tokens.Stride = 2 },
		func(s *Spec) { s.Split.Test = 0.2 }, func(s *Spec) { s.Binary.Tokens.Vocabulary = 200 }} {
		s := spec
		change(&s)
		set, err := Load(s)
		if err != nil {
			t.Fatal(err)
		}
		sums[set.SHA256()] = true
	}
	if len(sums) != 5 {
		t.Errorf("5 sets have %d sums", len(sums))
	}
	for want, change := range map[string]func(s *Spec){
		"does not exist":                       func(s *Spec) { s.Path = path + "x" },
		"makes 18350080 columns, at most":      func(s *Spec) { s.Binary.Tokens = Tokens{70, 1, "uint8", 1 << 18} },
		"fewer than a window of 9000":          func(s *Spec) { s.Binary.Tokens.Window = 9000 },
		"set tokens does not take normalize":   func(s *Spec) { s.Normalize = true },
		"fewer than a window of 4 and the one": func(s *Spec) { s.Split.Test = 0.001 },
	} {
		s := spec
		change(&s)
		if _, err := Load(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// A token that is not of the vocabulary that the user gave is an error of the batch, which names its place.
func TestATokenBeyondTheVocabulary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("abcabcabz"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := Load(Spec{Set: tokensSet, Path: path, Binary: Binary{Tokens: Tokens{Window: 2, Stride: 1, Type: "uint8", Vocabulary: 'd'}}})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBatch(false, set.Samples(), 7)
	if err := b.Take(set.Train, []int32{0, 1}); err != nil {
		t.Fatal(err)
	}
	if err := b.Take(set.Train, []int32{6}); err == nil || !strings.Contains(err.Error(), "token 8 is 122, and there are 100 different ones") {
		t.Errorf("%v", err)
	}
}
