package durable

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Of several that write one file at once, each writes its own: without replace the first that ends has it, with replace the last, and it is
// whole. Nothing is left behind, whatever fails.
func TestNewFilesDoNotMix(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	left := func(want ...string) {
		t.Helper()
		var names []string
		entries, err := os.ReadDir(dir)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if err != nil || strings.Join(names, " ") != strings.Join(want, " ") {
			t.Errorf("the folder has %v, want %v; %v", names, want, err)
		}
	}
	write := func(text string, replace bool) error {
		f, err := CreateNew(path)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		return f.End(err, replace)
	}
	var all sync.WaitGroup
	done := make([]bool, 8)
	for i := range done {
		all.Go(func() { done[i] = write(strings.Repeat(string(rune('a'+i)), 1<<16), false) == nil })
	}
	all.Wait()
	winner := -1
	for i, ok := range done {
		switch {
		case ok && winner >= 0:
			t.Errorf("%d and %d have both written the file", winner, i)
		case ok:
			winner = i
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || winner < 0 || string(text) != strings.Repeat(string(rune('a'+winner)), 1<<16) {
		t.Errorf("winner %d, %d bytes, %v", winner, len(text), err)
	}
	left("out")
	if err := write("other", false); err == nil || !strings.Contains(err.Error(), "out was written by another program meanwhile") {
		t.Errorf("a file is overwritten: %v", err)
	}
	if err := write("other", true); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "other" {
		t.Errorf("%q, %v", text, err)
	}
	f, err := CreateNew(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := f.End(broken, true); !errors.Is(err, broken) {
		t.Errorf("the cause is lost: %v", err)
	}
	left("out")
	if _, err := CreateNew(filepath.Join(dir, "none", "out")); err == nil {
		t.Error("a file in a folder that is not there")
	}
}
