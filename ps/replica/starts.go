package replica

import (
	"crypto/rand"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"fluentps/comm/shm"
	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/durable"
	"fluentps/ps/metrics"
	"fluentps/ps/station"
)

// StartsFile names in the run folder the start that writes replicas, and the one that it went on from, whose are the newest
// until it has some of its own.
const (
	StartsFile = "replica"
	startsMax  = 4 << 10 // bytes of it
)

// startForm is what newStart makes: it becomes part of a path.
var startForm = regexp.MustCompile(`^[0-9a-z]{1,64}$`)

// newStart is the name of a start, which no other has.
func newStart() string {
	name := make([]byte, 8)
	_, _ = rand.Read(name) // it never fails
	return hex.EncodeToString(name)
}

// noteStart writes them down.
func noteStart(folder *metrics.RunFolder, start, before string) error {
	return folder.Write(StartsFile, []byte(start+"\n"+before+"\n"))
}

// Starts names the starts of a run whose replicas may be newer than the checkpoints in its folder: the last one, and
// the one that it went on from the replicas of, if it did.
func Starts(dir string) []string {
	text, err := durable.ReadFile(filepath.Join(dir, StartsFile), startsMax)
	if err != nil {
		return nil // there were none
	}
	return slices.DeleteFunc(strings.Fields(string(text)), func(name string) bool { return !startForm.MatchString(name) })
}

// FirstOfHost says whether this rank acts for its host.
func FirstOfHost(r *station.Station) bool { return r.NodeOf[r.Me] == r.Me }

// SpareMemory is what replicas leave free on this host, for what MPI maps there.
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
