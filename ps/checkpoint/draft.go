package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"fluentps/ps/durable"
)

// Draft is a checkpoint that is being written: files go to Dir, and Finish gives it its name.
type Draft struct {
	Dir    string // of its files
	root   string
	number int64
}

// DraftDir is the folder of the checkpoint that is being written in root: there is one at a time.
func DraftDir(root string) string { return filepath.Join(root, newName) }

// Begin makes the folder for the next checkpoint in root, and root where there is none. What a crash left of earlier
// ones goes: of a run there is one writer.
func Begin(root string) (*Draft, error) {
	if err := os.MkdirAll(root, 0o777); err != nil {
		return nil, writeError(err)
	}
	if err := sweep(root); err != nil {
		return nil, writeError(err)
	}
	dirs, err := List(root)
	if err != nil {
		return nil, err
	}
	d := &Draft{Dir: DraftDir(root), root: root, number: 1}
	if len(dirs) > 0 {
		last, _ := numberOf(filepath.Base(dirs[0]))
		d.number = last + 1
	}
	if err := os.Mkdir(d.Dir, 0o777); err != nil {
		return nil, writeError(err)
	}
	return d, nil
}

// sweep removes what has the name of something half written or half removed.
func sweep(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == newName || strings.HasPrefix(e.Name(), oldPrefix) {
			if err := os.RemoveAll(filepath.Join(root, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Finish writes the manifest, with the entries that its files gave, and makes the checkpoint one. It returns its folder.
// After an error there is none.
func (d *Draft) Finish(m *Manifest) (string, error) {
	m.Program, m.Format, m.Number = programName, Format, d.number
	dir := filepath.Join(d.root, nameOf(d.number))
	err := writeManifest(d.Dir, m)
	if err == nil {
		err = durable.Rename(d.Dir, dir)
	}
	if err != nil {
		return "", errors.Join(writeError(err), d.Abandon())
	}
	return dir, nil
}

// Number is that of the checkpoint that it becomes.
func (d *Draft) Number() int64 { return d.number }

// Abandon removes what was written.
func (d *Draft) Abandon() error { return os.RemoveAll(d.Dir) }

// Amend replaces the manifest of a finished checkpoint, at once: a reader finds the old one or the new one.
func Amend(dir string, m *Manifest) error {
	if err := writeManifest(dir, m); err != nil {
		return writeError(err)
	}
	return nil
}

// Prune removes all finished checkpoints in root but the newest so many, and the best. A crash leaves none that is half
// there.
func Prune(root string, keep int) error {
	dirs, err := List(root)
	if err != nil || len(dirs) <= keep {
		return err
	}
	best, err := ReadBest(root)
	if err != nil {
		return err // better one too many than the wrong one removed
	}
	for _, dir := range dirs[keep:] {
		if best != nil && filepath.Base(dir) == best.Checkpoint {
			continue
		}
		old := filepath.Join(root, oldPrefix+filepath.Base(dir))
		if err := os.Rename(dir, old); err != nil {
			return fmt.Errorf("checkpoints: remove %s: %w", dir, err)
		}
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("checkpoints: remove %s: %w", dir, err)
		}
	}
	return nil
}

// Text is the file of a manifest, with its checksum.
func (m *Manifest) Text() ([]byte, error) {
	m.Program, m.Format = programName, Format
	return m.text()
}

func (m *Manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	return fmt.Appendf(text, "%s%08x\n", sumPrefix, crc32.Checksum(text, castagnoli)), nil
}

// writeManifest writes it, with everything else in the folder synced before.
func writeManifest(dir string, m *Manifest) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, manifestName), text)
}

// writeError says what a user can do about err.
func writeError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("checkpoint: no space or quota left; free some, or set checkpoint.keep: 0 for a run without checkpoints: %w", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("checkpoint: the run folder cannot be written; choose another with --out, or set checkpoint.keep: 0: %w", err)
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ESTALE):
		return fmt.Errorf("checkpoint: the file system of the run folder fails; ask who looks after it, and go on from a copy elsewhere with --resume, or from the folder when it is well: %w", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("checkpoint: the run folder is not on this host; choose a file system that all hosts share with --out, or set checkpoint.keep: 0: %w", err)
	}
	return fmt.Errorf("checkpoint: %w", err)
}
