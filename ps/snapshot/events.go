package snapshot

import (
	"fmt"
	"time"

	"fluentps/comm/wire"
)

// EventKind is what has happened.
type EventKind uint8

const (
	Tick      EventKind = iota // At, Version, Spent: time has passed, and the lead shard has come to a version
	Begun                      // after Begin: a folder is there, and Number counts it; or Problem says why not
	Named                      // the lead shard has come to the version, or all workers have stopped: the manifest is known but for its files; or Problem says why not
	Saved                      // File: somebody has written a file, or could not; or a host that was told knows
	Finished                   // after Finish or Abandon: Folder is its name, "": it is gone; Problem is what went wrong
	Judged                     // after Judge: the checkpoint was looked at
	Stop                       // training is to end; Cut: short, so that nobody waits to have checkpoints looked at; Problem says that what it has is worth nothing
	NodesDone                  // Spent: all nodes have done what they had to do; Spent: because the budget is used up
	Over                       // Told: training has ended, and so many files were told in all
	eventKinds
)

var eventNames = [eventKinds]string{"tick", "begun", "named", "saved", "finished", "judged", "stop", "nodesdone", "over"}

func (k EventKind) String() string { return eventNames[k] }

// Event is what has happened. Fields that a kind does not name are zero.
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

// EffectKind is what is to be done.
type EffectKind uint8

const (
	Begin   EffectKind = iota // make a folder without a name; answer with Begun
	Name                      // have the lead shard name a version; Named comes, unless training ends before
	Pause                     // have all workers stop; NodesDone comes
	GoOn                      // keep what all have, which is Named, and let new nodes go on
	End                       // training has ended; say Over when all files were told
	Finish                    // Files: write the manifest and give the folder its name; answer with Finished
	Abandon                   // remove the folder; answer with Finished and the same Problem, or why the folder could not be removed
	Made                      // Folder: say that a checkpoint is there; Problem: earlier ones stay that should have gone
	Lost                      // Problem: say that none is there that was due
	Judge                     // Folder: look at it; answer with Judged
	Tell                      // Host, Version, Number, Files: tell a host that a replica is complete; with Problem, that it goes; Saved comes of its manifest
	Settled                   // nobody writes any more
	effectKinds
)

var effectNames = [effectKinds]string{"begin", "name", "pause", "goon", "end", "finish", "abandon", "made", "lost", "judge", "tell", "settled"}

func (k EffectKind) String() string { return effectNames[k] }

// Effect is what is to be done. Files are valid until the next Step.
type Effect struct {
	Kind    EffectKind
	Files   []wire.FileSaved // of a checkpoint, servers' before workers', each by index; of a replica as they came
	Folder  string
	Problem string
	Host    int32
	Version int64
	Number  int64
}

// unwritten is the problem of a checkpoint of which a rank could not write its file.
func (c *Config) unwritten(rank int32) string {
	name := fmt.Sprintf("rank %d", rank)
	if c.Place != nil {
		name = c.Place(rank)
	}
	return name + " could not write its file"
}
