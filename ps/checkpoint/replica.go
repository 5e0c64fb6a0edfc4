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
type Replicas struct {
	dir  string
	lock *os.File
}

const (
	replicaPrefix = "fluentps-"
	replicaLock   = "lock"
	// leftoverAge is how long replicas wait for a start that takes them up. Whoever was killed cannot remove its own.
	leftoverAge = 24 * time.Hour
)

// ReplicaDir is the folder of a start's replicas, by the name of the start.
func ReplicaDir(memory, start string) string {
	return filepath.Join(memory, fmt.Sprintf("%s%d-%s", replicaPrefix, os.Getuid(), start))
}

// ReplicaVersion is the folder of a start's checkpoint of that version in its ReplicaDir.
func ReplicaVersion(dir string, version int64) string {
	return filepath.Join(dir, strconv.FormatInt(version, 10))
}

// ReplicaManifest is the file of a version's manifest.
func ReplicaManifest(dir string, version int64) string {
	return filepath.Join(ReplicaVersion(dir, version), manifestName)
}

// MakeReplicaVersion makes that folder.
func MakeReplicaVersion(dir string, version int64) (string, error) {
	path := ReplicaVersion(dir, version)
	return path, os.MkdirAll(path, 0o700)
}

// HoldReplicas makes the folder of a start on this host, and holds its lock until Release or the end of the process.
func HoldReplicas(memory, start string) (*Replicas, error) {
	r := &Replicas{dir: ReplicaDir(memory, start)}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if r.lock, err = os.Create(filepath.Join(r.dir, replicaLock)); err != nil {
		return nil, err
	}
	return r, syscall.Flock(int(r.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// Dir is the folder.
func (r *Replicas) Dir() string { return r.dir }

// Keep removes the versions before this one.
func (r *Replicas) Keep(version int64) error {
	var problems []error
	for _, v := range versionsIn(r.dir) {
		if v < version {
			problems = append(problems, os.RemoveAll(ReplicaVersion(r.dir, v)))
		}
	}
	return errors.Join(problems...)
}

// Drop removes a version.
func (r *Replicas) Drop(version int64) error { return os.RemoveAll(ReplicaVersion(r.dir, version)) }

// Release lets go of the lock, and with remove of everything.
func (r *Replicas) Release(remove bool) error {
	var err error
	if remove {
		err = os.RemoveAll(r.dir)
	}
	return errors.Join(err, r.lock.Close())
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
	dir := ReplicaDir(memory, start)
	if !ours(dir) {
		return nil
	}
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

// ours says whether a folder is one of this user's: in a folder that all may write to, anybody could have made it.
func ours(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// RemoveReplicas removes what a start left on this host, unless it still lives.
func RemoveReplicas(memory, start string) error {
	dir := ReplicaDir(memory, start)
	if !ours(dir) || lives(dir) {
		return nil
	}
	return os.RemoveAll(dir)
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
func lives(dir string) bool {
	f, err := durable.Open(filepath.Join(dir, replicaLock))
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
