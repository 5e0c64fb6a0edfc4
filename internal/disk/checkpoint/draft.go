package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"fluentps/internal/disk/durable"
)

// Draft is a checkpoint that is being written. Its files go to In, and Finish gives its folder the final name.
type Draft struct {
	In     *durable.Folder // the folder of its files
	root   *durable.Folder
	number int64
	name   string
}

// DraftName is the name of the folder of a checkpoint while a start of the run writes it. A start writes one checkpoint at a time. No
// start finishes what is in the folder of another.
func DraftName(start string) string { return newName + "-" + start }

// Begin makes the folder for the next checkpoint of a start, and the folder of all checkpoints if the run has none. It removes what a
// crash left of earlier checkpoints, because a run has one writer only.
func Begin(run *durable.Folder, start string) (*Draft, error) {
	root := run.MakeIn(Folder, 0o777)
	d, err := begin(root, DraftName(start))
	if err != nil {
		return nil, errors.Join(writeError(err), root.Close())
	}
	return d, nil
}

func begin(root *durable.Folder, name string) (*Draft, error) {
	entries, err := root.List()
	if err != nil {
		return nil, err
	}
	d := &Draft{root: root, number: 1, name: name}
	for _, e := range entries {
		if n, ok := numberOf(e.Name()); ok && e.IsDir() {
			d.number = max(d.number, n+1)
		}
		if strings.HasPrefix(e.Name(), newName) || strings.HasPrefix(e.Name(), oldPrefix) { // partly written, or partly removed
			if err := root.RemoveAll(e.Name()); err != nil {
				return nil, err
			}
		}
	}
	if err := root.Make(name, 0o777); err != nil {
		return nil, err
	}
	d.In = root.In(name)
	return d, d.In.Err()
}

// Finish writes the manifest, whose Files are the entries that WriteFile returned, and gives the folder its final name, which it returns.
// After an error the checkpoint does not exist.
func (d *Draft) Finish(m *Manifest) (string, error) {
	m.Program, m.Format, m.Number = programName, Format, d.number
	err := writeManifest(d.In, m)
	if err == nil {
		err = d.root.Rename(d.name, nameOf(d.number))
	}
	if err != nil {
		return "", errors.Join(writeError(err), d.Abandon())
	}
	return d.root.Path(nameOf(d.number)), d.close()
}

// Number returns the number that the finished checkpoint will have.
func (d *Draft) Number() int64 { return d.number }

// Abandon removes the files of the draft.
func (d *Draft) Abandon() error { return errors.Join(d.root.RemoveAll(d.name), d.close()) }

func (d *Draft) close() error { return errors.Join(d.In.Close(), d.root.Close()) }

// Amend replaces the manifest of a finished checkpoint. It is atomic: a reader finds the old manifest or the new one.
func Amend(checkpoint *durable.Folder, m *Manifest) error {
	if err := writeManifest(checkpoint, m); err != nil {
		return writeError(err)
	}
	return nil
}

// Prune removes the finished checkpoints of a run, except for the newest keep ones and the best one. A crash leaves no partly removed
// checkpoint.
func Prune(run *durable.Folder, keep int) error {
	dirs, err := List(run.Path(Folder))
	if err != nil || len(dirs) <= keep {
		return err
	}
	best, err := ReadBest(run.Path(Folder))
	if err != nil {
		return err // a checkpoint too many is better than the best one removed
	}
	for _, dir := range dirs[keep:] {
		name := filepath.Base(dir)
		if best != nil && name == best.Checkpoint {
			continue
		}
		old := filepath.Join(Folder, oldPrefix+name)
		if err := run.Move(filepath.Join(Folder, name), old); err != nil {
			return fmt.Errorf("checkpoints: remove %s: %w", dir, err)
		}
		if err := run.RemoveAll(old); err != nil {
			return fmt.Errorf("checkpoints: remove %s: %w", dir, err)
		}
	}
	return nil
}

// Text returns the content of a manifest file, with its checksum.
func (m *Manifest) Text() ([]byte, error) {
	m.Program, m.Format = programName, Format
	return m.text()
}

func (m *Manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return Seal(append(text, '\n'), m.Format), nil
}

// writeManifest writes the manifest of a checkpoint. All other files in the folder were synced before.
func writeManifest(in *durable.Folder, m *Manifest) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	return in.Write(manifestName, text)
}

// writeError adds to err what a user can do about it.
func writeError(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("checkpoint: no space or quota left; free some, or set checkpoint.keep: 0 for a run without checkpoints: %w", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("checkpoint: the run folder cannot be written; choose another one with --out, or set checkpoint.keep: 0: %w", err)
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ESTALE):
		return fmt.Errorf("checkpoint: the file system of the run folder fails; ask its administrator, and resume from a "+
			"copy elsewhere with --resume, or from the run folder when it works again: %w", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("checkpoint: the run folder does not exist: it was removed or moved during the run, or this "+
			"host never had it; leave it in its place until the run ends, choose a file system that all hosts share with "+
			"--out, or set checkpoint.keep: 0: %w", err)
	}
	return fmt.Errorf("checkpoint: %w", err)
}
