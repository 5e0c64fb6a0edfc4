package replica

import (
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fluentps/internal/comm/shm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// StartsFile, in the run folder, names the start that writes replicas, and the start that it resumed from, whose replicas
// are the newest until the first start has some.
const (
	StartsFile = "replica"
	startsMax  = 4 << 10 // bytes of the file
)

// startForm is the form of names of starts, which become part of a path.
var startForm = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// newStart returns a unique name.
func newStart() string {
	name := make([]byte, 8)
	_, _ = rand.Read(name) // never fails
	return hex.EncodeToString(name)
}

// noteStart writes StartsFile.
func noteStart(folder *metrics.RunFolder, start, previous string) error {
	return folder.Write(StartsFile, []byte(start+"\n"+previous+"\n"))
}

// Starts returns the starts of a run whose replicas may be newer than the checkpoints in its folder: the last start, and
// the start from whose replicas it resumed, if any.
func Starts(dir string) []string {
	text, err := durable.ReadFile(filepath.Join(dir, StartsFile), startsMax)
	if err != nil {
		return nil // no start has made replicas
	}
	return slices.DeleteFunc(strings.Fields(string(text)), func(name string) bool { return !startForm.MatchString(name) })
}

// FirstOfHost says whether this rank acts for its host.
func FirstOfHost(r *station.Station) bool { return r.NodeOf[r.Me] == r.Me }

// SpareMemory is the memory that replicas leave free on this host, in bytes, because MPI maps memory there.
func SpareMemory(r *station.Station) int64 {
	ranks := 0
	for _, node := range r.NodeOf {
		if node == r.NodeOf[r.Me] {
			ranks++
		}
	}
	return int64(ranks) * shm.Spare
}

// FileName is the name of a file of a checkpoint.
func FileName(kind wire.FileKind, index int32) string {
	if kind == wire.WorkerFile {
		return checkpoint.WorkerFile(int(index))
	}
	return checkpoint.ServerFile(int(index))
}
