package folder

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The rows of each worker are those of run.json, which has them where they are dealt unequally.
func TestSharesAreRead(t *testing.T) {
	for text, want := range map[string][]int64{`{"worker_rows": [3, 5]}`: {3, 5}, `{}`: nil} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "run.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := Read(dir)
		if err != nil || !slices.Equal(r.WorkerRows, want) {
			t.Errorf("%s: %v, rows %v", text, err, r.WorkerRows)
		}
	}
}
