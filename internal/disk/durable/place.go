package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Place is the name that an open folder had when its place was taken, without symbolic links: a link that leads to it, such as
// latest, may lead elsewhere soon, and the folder stays where it is.
type Place struct {
	in   *Folder
	name string // "": it could not be found out, and nothing is said about it
}

// Place returns where the open folder lies.
func (f *Folder) Place() *Place {
	p := &Place{in: f}
	if f.root == nil {
		return p
	}
	name, err := filepath.EvalSymlinks(f.path)
	if errors.Is(err, fs.ErrNotExist) { // it has gone meanwhile
		name, err = f.path, nil
	}
	if err == nil {
		p.name = name
	}
	return p
}

// Exchange says what has become of an open folder that does not lie any more where it was opened.
type Exchange struct {
	Path    string // of the folder, as it was opened
	Now     string // what has its name now, as in "another folder"; "": nothing
	Moved   string // the folder's new path; "": not known, or it was removed
	Removed bool
}

// Exchanged returns nil if the folder lies where it was, or if nobody can tell.
//
// Device and inode number decide. Both are stable while the folder is open on the file systems that clusters share, NFS included. An
// NFS client keeps what it knows of a name for a while (acdirmax, by default 60 s), so another host's rename is seen that late,
// and a look that fails says nothing (the server may be away): both err towards "it lies where it was". For the same reason
// ask again before believing an Exchange: a name is missing for a moment where the entries of a folder are read anew.
func (p *Place) Exchanged() *Exchange {
	if p.name == "" {
		return nil
	}
	now, err := os.Stat(p.name)
	x := &Exchange{Path: p.in.path}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
	case err != nil:
		return nil
	case !now.IsDir():
		x.Now = kind(now.Mode())
		if now.Mode().IsRegular() {
			x.Now = "a file"
		}
	default:
		x.Now = "another folder"
	}
	dir, err := p.in.root.Open(".")
	if err != nil {
		x.Removed = isGone(err)
		return x.ifKnown()
	}
	defer dir.Close()
	mine, err := dir.Stat()
	if err != nil {
		x.Removed = isGone(err)
		return x.ifKnown()
	}
	if now != nil && os.SameFile(now, mine) {
		return nil
	}
	x.find(dir, mine)
	return x
}

// isGone says whether a call on an open folder failed because the folder does not exist any more: an NFS server says ESTALE.
func isGone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESTALE) }

// ifKnown returns nil if the open folder could not be looked at, for a reason that says nothing about it.
func (x *Exchange) ifKnown() *Exchange {
	if !x.Removed {
		return nil
	}
	return x
}

// find finds out where the folder is now.
func (x *Exchange) find(dir *os.File, mine fs.FileInfo) {
	const deleted = " (deleted)" // Linux appends it to the name that the folder had
	to, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	stat, ok := mine.Sys().(*syscall.Stat_t)
	if x.Removed = ok && stat.Nlink == 0 || err == nil && strings.HasSuffix(to, deleted); x.Removed || err != nil {
		return
	}
	if there, err := os.Stat(to); err == nil && os.SameFile(there, mine) {
		x.Moved = to
	}
}
