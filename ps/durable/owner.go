package durable

import (
	"crypto/rand"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Owner is whose a folder is.
type Owner struct {
	UID    int
	Mine   bool // whose files are those of this process
	Public bool // anybody may write it
}

// String names the user, as far as the system knows one.
func (o Owner) String() string {
	number := strconv.Itoa(o.UID)
	if u, err := user.LookupId(number); err == nil {
		return "user " + u.Username + " (" + number + ")"
	}
	return "user " + number
}

// Owner tells whose the folder is.
func (f *Folder) Owner() (Owner, error) {
	info, err := f.Lstat(".")
	if err != nil {
		return Owner{}, err
	}
	return f.ownerBy(info), nil
}

// OwnerOf tells whose a name in the folder is.
func (f *Folder) OwnerOf(name string) (Owner, error) {
	info, err := f.Lstat(name)
	if err != nil {
		return Owner{}, err
	}
	return f.ownerBy(info), nil
}

func (f *Folder) ownerBy(info fs.FileInfo) Owner {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Owner{UID: os.Geteuid(), Mine: true} // no system that this runs on
	}
	o := Owner{UID: int(stat.Uid), Public: info.Mode().Perm()&0o002 != 0}
	if o.Mine = o.UID == os.Geteuid(); !o.Mine {
		o.Mine = o.UID == f.uidHere()
	}
	return o
}

// uidHere is the user whom files belong to that this process makes in the folder, -1 where it can make none. On most file
// systems that is the process's own. A server of NFS makes another of root (root_squash) or of all (all_squash), and some
// file systems have one owner for all files.
func (f *Folder) uidHere() int {
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
