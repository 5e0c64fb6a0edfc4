// Package durable opens, writes and names the files of runs: what is written lasts over a crash of the process or of its host,
// and where others may write in a folder (Folder), what they put there leads no write astray.
//
// Data is on the disk before a name points to it, and the name is on the disk before the call returns. So a reader finds,
// at any time and after any crash, what was there before or the whole of what replaced it.
package durable

import (
	"path/filepath"
)

// WriteFile is Folder.Write of a file by its path.
func WriteFile(path string, data []byte) error {
	f := Below(filepath.Dir(path))
	defer f.Close()
	return f.Write(filepath.Base(path), data)
}
