package pack

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Whoever asks for the copy of a pack gets the same one, which is made once, however many ask at once; and the next time it is there.
func TestStagedOnce(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "p.fps"), t.TempDir()
	content := bytes.Repeat([]byte("0123456789abcdef"), 40<<20/16)
	made(t, path, [][]byte{nil, content})
	var copies atomic.Int64
	ask := func() (string, error) {
		return Stage(path, dir, func(done, all int64) {
			if done == all {
				copies.Add(1)
			}
		})
	}
	var all sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		all.Go(func() {
			var err error
			if paths[i], err = ask(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	again, err := ask()
	if err != nil || copies.Load() != 1 {
		t.Errorf("%d copies, %v", copies.Load(), err)
	}
	for _, p := range paths {
		if p != again || filepath.Dir(p) != dir {
			t.Errorf("copies %s and %s", p, again)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(again); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the copy differs: %v", err)
	}
	// a copy that a crash has left unfinished is made again
	if err := os.Truncate(again, 5000); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(); err != nil || copies.Load() != 2 {
		t.Errorf("%d copies, %v", copies.Load(), err)
	}
	if names, _ := filepath.Glob(dir + "/.*.new"); names != nil {
		t.Errorf("left behind: %v", names)
	}
}

// What cannot be staged is an error with a way out, and leaves no copy.
func TestNotStaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.fps")
	made(t, path, [][]byte{make([]byte, 3*BlockBytes)})
	damaged := filepath.Join(t.TempDir(), "d.fps")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[4096+BlockBytes+7] ^= 1
	if err := os.WriteFile(damaged, b, 0o666); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	linked := t.TempDir()
	if err := os.Symlink(filepath.Join(linked, "elsewhere"),
		filepath.Join(linked, fmt.Sprintf("fluentps-%s.fps", f.SHA256[:32]))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, dir, want string }{
		"no folder":       {path, filepath.Join(dir, "none"), "name a folder on the disk of each host"},
		"no pack":         {filepath.Join(dir, "none.fps"), dir, "none.fps: no such file"},
		"damaged":         {damaged, dir, "block 1 of section a"},
		"a link is there": {path, linked, "remove it, or name another folder"},
	} {
		if _, err := Stage(c.path, c.dir, func(int64, int64) {}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if names, _ := filepath.Glob(dir + "/*.fps"); names != nil {
		t.Errorf("left behind: %v", names)
	}
	if names, _ := filepath.Glob(dir + "/.*.new"); names != nil {
		t.Errorf("left behind: %v", names)
	}
}

// The folder of the batch system comes before that of the user.
func TestScratch(t *testing.T) {
	for want, environ := range map[string]map[string]string{"/a": {"SLURM_TMPDIR": "/a", "TMPDIR": "/b"}, "/b": {"TMPDIR": "/b"}} {
		if got, err := Scratch(func(name string) string { return environ[name] }); err != nil || got != want {
			t.Errorf("%v: %q, %v", environ, got, err)
		}
	}
	if _, err := Scratch(func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "SLURM_TMPDIR nor TMPDIR") {
		t.Error(err)
	}
}
