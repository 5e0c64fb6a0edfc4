package durable

import (
	"crypto/rand"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Owner is the owner of a folder.
type Owner struct {
	UID    int
	Mine   bool // the user to whom this process's files belong
	Public bool // everybody may write it
}

// String names the user, if the system knows the name.
func (o Owner) String() string {
	number := strconv.Itoa(o.UID)
	if u, err := user.LookupId(number); err == nil {
		return "user " + u.Username + " (" + number + ")"
	}
	return "user " + number
}

// Owner returns the owner of the folder.
func (f *Folder) Owner() (Owner, error) {
	info, err := f.Lstat(".")
	if err != nil {
		return Owner{}, err
	}
	return f.ownerFrom(info), nil
}

// OwnerOf returns the owner of a file or folder in the folder.
func (f *Folder) OwnerOf(name string) (Owner, error) {
	info, err := f.Lstat(name)
	if err != nil {
		return Owner{}, err
	}
	return f.ownerFrom(info), nil
}

func (f *Folder) ownerFrom(info fs.FileInfo) Owner {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Owner{UID: os.Geteuid(), Mine: true} // not on systems that this program runs on
	}
	o := Owner{UID: int(stat.Uid), Public: info.Mode().Perm()&0o002 != 0}
	if o.Mine = o.UID == os.Geteuid(); !o.Mine {
		o.Mine = o.UID == f.uidOfNewFiles()
	}
	return o
}

// uidOfNewFiles returns the owner of files that this process makes in the folder, -1 if it can make none. On most file
// systems that is the process's own user. An NFS server maps root (root_squash) or all users (all_squash) to another
// one, and some file systems have one owner for all files.
func (f *Folder) uidOfNewFiles() int {
	name := ".owner-" + rand.Text()
	file, err := f.Create(name)
	if err != nil {
		return -1
	}
	defer file.Close()
	defer f.root.Remove(name)
	info, err := file.Stat()
	if err != nil {
		return -1
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}
