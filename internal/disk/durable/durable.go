// Package durable opens, writes and renames the files of runs. Data that it writes survives a crash of the process or
// of its host. In a folder that others may write (Folder), nothing that they put there redirects a write.
//
// Data is on the disk before a name points to it, and the name is on the disk before the call returns. So at any time,
// and after any crash, a reader finds the old content or the whole of the new one.
package durable

import (
	"path/filepath"
)

// WriteFile is Folder.Write for a file given by its path.
func WriteFile(path string, data []byte) error {
	f := Below(filepath.Dir(path))
	defer f.Close()
	return f.Write(filepath.Base(path), data)
}
