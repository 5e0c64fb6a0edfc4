package durable

import (
	"os"
	"path/filepath"
	"testing"
)

// An open folder knows what has become of its name: whatever the name leads to, its own folder or another.
func TestAFolderKnowsWhetherItWasExchanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(dir, away string) error
		want   *Exchange // its Path is the folder's; Moved is away
	}{
		"nothing": {func(dir, away string) error { return nil }, nil},
		"renamed": {os.Rename, &Exchange{Moved: "away"}},
		"replaced by a folder": {func(dir, away string) error {
			must(t, os.Rename(dir, away))
			return os.Mkdir(dir, 0o777)
		}, &Exchange{Now: "another folder", Moved: "away"}},
		"replaced by a link to another folder": {func(dir, away string) error {
			must(t, os.Rename(dir, away))
			return os.Symlink(t.TempDir(), dir)
		}, &Exchange{Now: "another folder", Moved: "away"}},
		"replaced by a link to nothing": {func(dir, away string) error {
			must(t, os.Rename(dir, away))
			return os.Symlink(away+"-none", dir)
		}, &Exchange{Moved: "away"}},
		"replaced by a file": {func(dir, away string) error {
			must(t, os.Rename(dir, away))
			return os.WriteFile(dir, nil, 0o666)
		}, &Exchange{Now: "a file", Moved: "away"}},
		"moved, and a link leads to it": {func(dir, away string) error {
			must(t, os.Rename(dir, away))
			return os.Symlink(away, dir)
		}, nil},
		"moved, and moved back": {func(dir, away string) error {
			must(t, os.Rename(dir, away))
			return os.Rename(away, dir)
		}, nil},
		"removed": {func(dir, _ string) error { return os.Remove(dir) }, &Exchange{Removed: true}},
		"removed and made again": {func(dir, _ string) error {
			must(t, os.Remove(dir))
			return os.Mkdir(dir, 0o777)
		}, &Exchange{Now: "another folder", Removed: true}},
		"a folder above it was renamed": {func(dir, away string) error {
			must(t, os.Rename(filepath.Dir(dir), filepath.Dir(dir)+"-away"))
			return os.Symlink(filepath.Join(filepath.Dir(dir)+"-away", "run"), away)
		}, &Exchange{Moved: "away"}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir, away := filepath.Join(root, "runs", "run"), filepath.Join(root, "away")
			must(t, os.MkdirAll(dir, 0o777))
			f := Below(dir)
			defer f.Close()
			place := f.Place()
			must(t, c.change(dir, away))
			got := place.Exchanged()
			if c.want == nil || got == nil {
				if got != nil || c.want != nil {
					t.Errorf("%+v, want %+v", got, c.want)
				}
				return
			}
			if c.want.Path = dir; c.want.Moved != "" {
				real, err := filepath.EvalSymlinks(away)
				must(t, err)
				c.want.Moved = real
			}
			if *got != *c.want {
				t.Errorf("%+v, want %+v", *got, *c.want)
			}
		})
	}
}

// A run that was resumed by the link latest keeps its folder when the next run gets the link.
func TestALinkThatLeadsElsewhereExchangesNothing(t *testing.T) {
	root := t.TempDir()
	link := filepath.Join(root, "latest")
	must(t, os.Mkdir(filepath.Join(root, "1"), 0o777), os.Mkdir(filepath.Join(root, "2"), 0o777), os.Symlink("1", link))
	f := Below(link)
	defer f.Close()
	place := f.Place()
	must(t, os.Remove(link), os.Symlink("2", link))
	if got := place.Exchanged(); got != nil {
		t.Errorf("%+v", *got)
	}
	must(t, os.Rename(filepath.Join(root, "1"), filepath.Join(root, "3")))
	if got := place.Exchanged(); got == nil || got.Path != link || got.Now != "" || filepath.Base(got.Moved) != "3" {
		t.Errorf("%+v", got)
	}
	none := Below(filepath.Join(root, "none"))
	if got := none.Place().Exchanged(); got != nil {
		t.Errorf("a folder that could not be opened: %+v", *got)
	}
}
