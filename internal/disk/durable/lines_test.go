package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A line that a kill has torn is not joined to the next one.
func TestLinesAreAppendedToWholeOnes(t *testing.T) {
	for was, want := range map[string]string{"": "1,0,b\n", "1,0,a\n": "1,0,a\n1,0,b\n", "1,0,a\n2": "1,0,a\n1,0,b\n", "12": "1,0,b\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "x")
		if was != "" {
			if err := os.WriteFile(path, []byte(was), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		file, err := Below(dir).AppendLines("x")
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString("1,0,b\n")
		if got, _ := os.ReadFile(path); errors.Join(err, file.Close()) != nil || string(got) != want {
			t.Errorf("after %q: %q, %v, want %q", was, got, err, want)
		}
	}
}
