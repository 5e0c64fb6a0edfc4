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

	"fluentps/internal/disk/durable"
)

// Replicas are checkpoints in the memory file system of hosts:
//
//	/dev/shm/fluentps-1000-4f1c.../   one start of a run; on every host, with access for its user only
//	  lock                            locked as long as the start runs
//	  3/                              its third checkpoint: the files of this host's ranks, and of the ranks of another host
//	    manifest.json                 written when all files of the checkpoint exist, over all hosts
//
// Replicas outlive the processes but not the host. The next start finds them.
//
// Every user may make folders in a memory file system, and the run folder has the name of a start. So a folder of replicas is used only
// if this user owns it and no other user may write to it.
type Replicas struct {
	memory *durable.Folder
	name   string
	in     *durable.Folder
	lock   *os.File
}

const (
	replicaPrefix = "fluentps-"
	replicaLock   = "lock"
	// leftoverAge is how long replicas are kept for a start that resumes from them. A killed start cannot remove its own.
	leftoverAge = 24 * time.Hour
)

// ReplicaDir returns the folder of the replicas of a start, by the name of the start.
func ReplicaDir(memory, start string) string { return filepath.Join(memory, replicaName(start)) }

func replicaName(start string) string {
	return fmt.Sprintf("%s%d-%s", replicaPrefix, os.Getuid(), start)
}

// ReplicaVersion returns the folder of a version in a ReplicaDir.
func ReplicaVersion(dir string, version int64) string {
	return filepath.Join(dir, versionName(version))
}

func versionName(version int64) string { return strconv.FormatInt(version, 10) }

// MakeReplicaVersion makes the folder of a version in the folder of a start, unless it exists.
func MakeReplicaVersion(in *durable.Folder, version int64) *durable.Folder {
	return in.MakeIn(versionName(version), 0o700)
}

// MakeReplica makes a file of a version, or replaces it. The name "" stands for the manifest.
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

// HoldReplicas makes the folder of a start on this host, and holds its lock until Release or until the process ends.
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

// OpenReplicas opens the folder of a start on this host. It fails if another user owns the folder or may write to it.
func OpenReplicas(memory, start string) (*durable.Folder, error) {
	root := durable.Below(memory)
	defer root.Close()
	in := root.In(replicaName(start))
	info, err := in.Lstat(".")
	if err == nil {
		err = checkOwner(in.Path(""), info)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// TakeReplicas is OpenReplicas, but makes the folder if the start left none on this host.
func TakeReplicas(memory, start string) (*durable.Folder, error) {
	root := durable.Below(memory)
	defer root.Close()
	if err := root.Make(replicaName(start), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return OpenReplicas(memory, start)
}

// Dir returns the path of the folder.
func (r *Replicas) Dir() string { return r.in.Path("") }

// Keep removes the versions before version.
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

// Release releases the lock. With remove, it also removes all replicas of the start.
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
		return nil // the host has no replicas
	}
	for _, e := range entries {
		if v, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && e.IsDir() {
			versions = append(versions, v)
		}
	}
	return versions
}

// Replica is the part of a version that a host has.
type Replica struct {
	Version  int64
	Manifest *Manifest        // nil if it is missing or damaged
	Files    map[string]int64 // bytes by name
}

// ListReplicas returns the replicas of a start on this host, the newest version first.
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

// checkOwner refuses a folder that another user owns or may write to.
func checkOwner(dir string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(stat.Uid) != os.Geteuid():
		return fmt.Errorf("%s was made by another user", dir)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("other users may write to %s: it has mode %04o", dir, info.Mode().Perm())
	}
	return nil
}

// RemoveReplicas removes the replicas of a start on this host, unless the start still runs.
func RemoveReplicas(memory, start string) error {
	in, err := OpenReplicas(memory, start)
	if err != nil {
		return nil // this user has no replicas here
	}
	defer in.Close()
	if isLocked(in) {
		return nil
	}
	root := durable.Below(memory)
	defer root.Close()
	return root.RemoveAll(replicaName(start))
}

// SweepReplicas removes replicas of this user on this host that are older than a day. It keeps those of the start needed, which may be
// older because the clock jumped or the job waited for long.
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

// isLocked reports whether a process holds the lock. A kill -9 releases it.
func isLocked(in *durable.Folder) bool {
	f, err := in.Open(replicaLock)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil
}
