package folder

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"fluentps/internal/disk/foreign"
)

// Limits of a search, so that one in a home folder ends.
const (
	depthOfRuns = 6
	foldersMax  = 100_000
)

// Below lists the run folders below a folder, in the order of their names. It follows no symbolic link, so each is found once, and
// looks for none inside another.
func Below(dir string) (found []string, err error) {
	seen := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && path == dir:
			return err
		case err != nil || !e.IsDir():
			return nil // a folder that may not be read holds no runs for this user
		}
		if seen++; seen > foldersMax {
			return fmt.Errorf("%s has more than %d folders below it; name a smaller one", foreign.Word(dir), foldersMax)
		}
		if Is(path) {
			found = append(found, path)
			return fs.SkipDir
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil && strings.Count(rel, string(filepath.Separator)) >= depthOfRuns-1 {
			return fs.SkipDir
		}
		return nil
	})
	return found, err
}
