package shm

import (
	"os"
	"path/filepath"
	"testing"
)

// The ranks of a start share one folder. Only the folders of starts that are over are removed, with what is in them; a
// folder that others may write, and a link, are not used.
func TestScratch(t *testing.T) {
	root := t.TempDir()
	put := func(start string) string {
		t.Helper()
		dir, err := MakeScratch(root, start)
		if err == nil {
			dir, err = MakeScratch(root, start) // another rank
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "vader_segment"), []byte("x"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	over, alive := put("a.1"), put("a.2")
	if err := RemoveScratch(root, func(start string) bool { return start == "a.1" }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(over); err == nil {
		t.Error("the folder of a start that is over is there")
	}
	if _, err := os.Stat(filepath.Join(alive, "vader_segment")); err != nil {
		t.Errorf("the folder of a start that runs: %v", err)
	}
	if err := os.Chmod(alive, 0o777); err != nil {
		t.Fatal(err)
	}
	if dir, err := MakeScratch(root, "a.2"); err == nil || dir != "" {
		t.Errorf("a folder that all may write was used: %q", dir)
	}
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(root, scratchName("a.3"))); err != nil {
		t.Fatal(err)
	}
	if dir, err := MakeScratch(root, "a.3"); err == nil || dir != "" {
		t.Errorf("a link was followed: %q", dir)
	}
	_ = RemoveScratch(root, func(string) bool { return true })
	if _, err := os.Stat(elsewhere); err != nil {
		t.Error("what a link names was removed")
	}
}
