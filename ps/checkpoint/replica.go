package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fluentps/ps/durable"
)

// Replicas are checkpoints in the memory file system of hosts:
//
//	/dev/shm/fluentps-1000-4f1c.../   of one start of a run, on every host, for its user alone
//	  lock                            held as long as the start lives
//	  3/                              its third checkpoint: files of this host's ranks, and of those of another host
//	    manifest.json                 when all files of it are there, over all hosts
//
// They outlive the processes, so that the next start finds them, and not the host.
//
// Anybody may make folders in a memory file system, and the name of a start stands in its run folder. So a folder of replicas is
// used only where it is this user's own, and no other may write it.
type Replicas struct {
	memory *durable.Folder
	name   string
	in     *durable.Folder
	lock   *os.File
}

const (
	replicaPrefix = "fluentps-"
	replicaLock   = "lock"
	// leftoverAge is how long replicas wait for a start that takes them up. Whoever was killed cannot remove its own.
	leftoverAge = 24 * time.Hour
)

// ReplicaDir is the folder of a start's replicas, by the name of the start.
func ReplicaDir(memory, start string) string { return filepath.Join(memory, replicaName(start)) }

func replicaName(start string) string {
	return fmt.Sprintf("%s%d-%s", replicaPrefix, os.Getuid(), start)
}

// ReplicaVersion is the folder of a start's checkpoint of that version in its ReplicaDir.
func ReplicaVersion(dir string, version int64) string {
	return filepath.Join(dir, versionName(version))
}

func versionName(version int64) string { return strconv.FormatInt(version, 10) }

// MakeReplicaVersion makes the folder of a version, where there is none, in that of a start.
func MakeReplicaVersion(in *durable.Folder, version int64) *durable.Folder {
	return in.MakeIn(versionName(version), 0o700)
}

// MakeReplica makes a file of a version anew, or with "" its manifest.
func MakeReplica(in *durable.Folder, version int64, name string) (*os.File, error) {
	if name == "" {
		name = manifestName
	}
	of := MakeReplicaVersion(in, version)
	defer of.Close()
	return of.Renew(name)
}

// WriteReplicaManifest writes the manifest of a version.
func WriteReplicaManifest(in *durable.Folder, version int64, text []byte) error {
	of := MakeReplicaVersion(in, version)
	return errors.Join(of.Write(manifestName, text), of.Close())
}

// HoldReplicas makes the folder of a start on this host, and holds its lock until Release or the end of the process.
func HoldReplicas(memory, start string) (*Replicas, error) {
	r := &Replicas{memory: durable.Below(memory), name: replicaName(start)}
	err := r.memory.Make(r.name, 0o700)
	if err == nil {
		r.in = r.memory.In(r.name)
		r.lock, err = r.in.Create(replicaLock)
	}
	if err != nil {
		return nil, errors.Join(err, r.memory.Close())
	}
	return r, syscall.Flock(int(r.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// OpenReplicas opens the folder of a start on this host. One that is another user's is an error.
func OpenReplicas(memory, start string) (*durable.Folder, error) {
	root := durable.Below(memory)
	defer root.Close()
	in := root.In(replicaName(start))
	info, err := in.Lstat(".")
	if err == nil {
		err = ours(in.Path(""), info)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// TakeReplicas is OpenReplicas of a start that may have left none on this host: then it makes the folder.
func TakeReplicas(memory, start string) (*durable.Folder, error) {
	root := durable.Below(memory)
	defer root.Close()
	if err := root.Make(replicaName(start), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return OpenReplicas(memory, start)
}

// Dir is the folder.
func (r *Replicas) Dir() string { return r.in.Path("") }

// Keep removes the versions before this one.
func (r *Replicas) Keep(version int64) error {
	var problems []error
	for _, v := range versionsIn(r.Dir()) {
		if v < version {
			problems = append(problems, r.in.RemoveAll(versionName(v)))
		}
	}
	return errors.Join(problems...)
}

// Drop removes a version.
func (r *Replicas) Drop(version int64) error { return r.in.RemoveAll(versionName(version)) }

// Release lets go of the lock, and with remove of everything.
func (r *Replicas) Release(remove bool) error {
	var err error
	if remove {
		err = r.memory.RemoveAll(r.name)
	}
	return errors.Join(err, r.lock.Close(), r.in.Close(), r.memory.Close())
}

func versionsIn(dir string) (versions []int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // there are none
	}
	for _, e := range entries {
		if v, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && e.IsDir() {
			versions = append(versions, v)
		}
	}
	return versions
}

// Replica is what a host has of a version.
type Replica struct {
	Version  int64
	Manifest *Manifest        // nil if it is not there, or damaged
	Files    map[string]int64 // bytes by name
}

// ListReplicas tells what this host has of a start, the newest version first.
func ListReplicas(memory, start string) (all []Replica) {
	in, err := OpenReplicas(memory, start)
	if err != nil {
		return nil
	}
	defer in.Close()
	dir := in.Path("")
	for _, v := range versionsIn(dir) {
		path := ReplicaVersion(dir, v)
		entries, err := os.ReadDir(path)
		if err != nil {
			continue
		}
		r := Replica{Version: v, Files: map[string]int64{}}
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				r.Files[e.Name()] = info.Size()
			}
		}
		if m, err := Open(path); err == nil {
			r.Manifest = m
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Replica) int { return int(b.Version - a.Version) })
	return all
}

// ours refuses a folder that another user made, or may write.
func ours(dir string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s was made by another user", dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("%s may be written by others: it has mode %04o", dir, info.Mode().Perm())
	}
	return nil
}

// RemoveReplicas removes what a start left on this host, unless it still lives.
func RemoveReplicas(memory, start string) error {
	in, err := OpenReplicas(memory, start)
	if err != nil {
		return nil // there are none of this user
	}
	defer in.Close()
	if lives(in) {
		return nil
	}
	root := durable.Below(memory)
	defer root.Close()
	return root.RemoveAll(replicaName(start))
}

// SweepReplicas removes what starts of this user left on this host that nobody took up for a day, but for the start whose are
// needed: they may be older, by a clock that has jumped or a run that waited for long.
func SweepReplicas(memory, needed string, now time.Time) error {
	mine := fmt.Sprintf("%s%d-", replicaPrefix, os.Getuid())
	entries, err := os.ReadDir(memory)
	if err != nil {
		return err
	}
	var problems []error
	for _, e := range entries {
		start, found := strings.CutPrefix(e.Name(), mine)
		if !found || start == needed {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && now.Sub(info.ModTime()) > leftoverAge {
			err = RemoveReplicas(memory, start)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// lives says whether a process holds the lock. A kill -9 lets go of it.
func lives(in *durable.Folder) bool {
	f, err := in.Open(replicaLock)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
