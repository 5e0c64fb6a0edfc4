package snapshot

import (
	"fmt"
	"time"

	"fluentps/internal/comm/wire"
)

// EventKind says what happened.
type EventKind uint8

const (
	Tick  EventKind = iota // At, Version, Spent: time has passed, and the lead shard is at this version
	Begun                  // answers Begin: a folder is there, and Number is its number; or Problem says why not
	// The lead shard has made the version, or all workers have stopped: the manifest is known except for its files. Or
	// Problem says why it is not.
	Named
	Saved    // File: a rank has written a file, or could not; or a host that was told has acknowledged
	Finished // answers Finish and Abandon: Folder is the checkpoint's name, "": it is gone; Problem is what went wrong
	Judged   // answers Judge: the checkpoint was evaluated
	// Training must end. Cut: at once, so that no checkpoint is evaluated any more. Problem: why the run's checkpoints
	// are worth nothing.
	Stop
	NodesDone // all nodes are done; Spent: because the budget is used up
	Over      // training has ended; Told: the number of files that all ranks reported in all
	eventKinds
)

var eventNames = [eventKinds]string{"tick", "begun", "named", "saved", "finished", "judged", "stop", "nodesdone", "over"}

func (k EventKind) String() string { return eventNames[k] }

// Event is one thing that happened. Fields that its kind does not name are zero.
type Event struct {
	Kind    EventKind
	At      time.Duration // of training
	Version int64
	Spent   bool
	Cut     bool
	Number  int64
	File    wire.FileSaved
	Folder  string
	Problem string
	Told    int64
}

// EffectKind says what the driver must do.
type EffectKind uint8

const (
	Begin   EffectKind = iota // make a folder without a name; answer with Begun
	Name                      // make the lead shard name a version; Named follows, unless training ends before
	Pause                     // make all workers stop; NodesDone follows
	GoOn                      // keep the state of all nodes, which is Named, and let new nodes resume
	End                       // training has ended; answer with Over when all files were reported
	Finish                    // Files: write the manifest and give the folder its name; answer with Finished
	Abandon                   // remove the folder; answer with Finished and the same Problem, or why the folder could not be removed
	Made                      // Folder: report that a checkpoint is there; Problem: earlier checkpoints could not be removed
	Lost                      // Problem: report that a checkpoint that was due is not there
	Judge                     // Folder: evaluate it; answer with Judged
	// Host, Version, Number, Files: tell a host that a replica is complete; or, with Problem, that the host must remove
	// it. Saved follows, for its manifest.
	Tell
	Settled // nobody writes any more
	effectKinds
)

var effectNames = [effectKinds]string{"begin", "name", "pause", "goon", "end", "finish", "abandon", "made", "lost",
	"judge", "tell", "settled"}

func (k EffectKind) String() string { return effectNames[k] }

// Effect is one thing to do. Files are valid until the next Step.
type Effect struct {
	Kind    EffectKind
	Files   []wire.FileSaved // of a checkpoint: servers' before workers', each by index; of a replica: in order of arrival
	Folder  string
	Problem string
	Host    int32
	Version int64
	Number  int64
}

// unwritten is the problem text of a checkpoint when a rank could not write its file.
func (c *Config) unwritten(rank int32) string {
	name := fmt.Sprintf("rank %d", rank)
	if c.Place != nil {
		name = c.Place(rank)
	}
	return name + " could not write its file"
}
