// Package snapshot coordinates the checkpoints of a run. It decides when a checkpoint is begun, when all of its files
// are there and it gets its name, when its replica in the memories of hosts is complete, and whether nodes that are
// done have paused or ended. It is pure: rank 0 tells a Coordinator what happened, and does what it answers.
//
// A checkpoint is one cut. Where each version is a cut, the lead shard names one in advance (internal/core/servernode/resume.go).
// Elsewhere all workers pause (internal/core/servernode/stop.go). Each rank that has a part of the checkpoint writes its file and tells
// rank 0. The manifest is written last, and only when all files are there: a checkpoint with a name is complete.
package snapshot

import (
	"slices"
	"time"

	"fluentps/internal/comm/wire"
)

// Config is everything that a coordinator is made from.
type Config struct {
	Every        time.Duration           // training time between two checkpoints; 0: by updates
	EveryUpdates int64                   // versions of the lead shard between two checkpoints; 0: by time
	Files        int                     // files of one checkpoint
	Pauses       bool                    // versions are not cuts: all workers stop for a checkpoint
	Judges       bool                    // each checkpoint is evaluated when it has its name, before the next is begun
	Hosts        []int32                 // the first rank of each host that keeps replicas in memory; nil: none does
	Copies       bool                    // each file in a host's memory is also sent to the next host
	Place        func(rank int32) string // names a rank; nil: by its number
}

// Coordinator is rank 0's state of the checkpoints of a run.
type Coordinator struct {
	c            Config
	phase        phase
	begunAt      time.Duration // when the last checkpoint was begun
	begunVersion int64         // the lead shard's version at that time
	hasDraft     bool          // there is a folder without a name
	diskBusy     bool          // rank 0 is working on that folder: Begun or Finished will follow
	named        bool          // Named has arrived for the checkpoint
	files        []wire.FileSaved
	failure      string // why the checkpoint is worth nothing; "": it may be good

	pausing    bool // all workers were asked to stop for a pause
	stopped    bool // training ends: nothing more is begun
	cutShort   bool // training ends at once: nothing more is evaluated
	diverged   string
	over       bool  // training has ended
	filesHeard int64 // files that rank 0 was told of, in folders and memories
	filesTold  int64 // files that all ranks have reported, known when training is over
	settled    bool

	replica replica
	out     []Effect
}

// phase is the progress of a checkpoint.
type phase uint8

const (
	idle      phase = iota
	beginning       // its folder is being made
	collecting
	finishing // it gets its name, or is removed
	judging
)

// New makes the coordinator of a run whose last checkpoint was made at this time of training and at this version.
func New(c Config, at time.Duration, version int64) *Coordinator {
	return &Coordinator{c: c, begunAt: at, begunVersion: version}
}

// Pausing says whether all workers were asked to stop for a pause.
func (c *Coordinator) Pausing() bool { return c.pausing }

// Step handles an event and returns what must be done, in order. The next Step reuses the slice.
func (c *Coordinator) Step(e Event) []Effect {
	c.out = c.out[:0]
	switch e.Kind {
	case Tick:
		c.tick(&e)
	case Begun:
		c.begun(&e)
	case Named:
		c.named = true
		if e.Problem != "" {
			c.failure = e.Problem
		}
	case Saved:
		c.saved(&e.File)
	case Finished:
		c.finished(&e)
	case Judged:
		if c.phase == judging {
			c.phase = idle
		}
	case Stop:
		c.stopped, c.cutShort = true, c.cutShort || e.Cut
		if e.Problem != "" {
			c.diverged = e.Problem
		}
	case NodesDone:
		c.nodesDone(e.Spent)
	case Over:
		c.stopped, c.over, c.filesTold = true, true, e.Told
	}
	c.settleIfOver()
	return c.out
}

func (c *Coordinator) emit(e Effect) { c.out = append(c.out, e) }

// tick begins a checkpoint when one is due.
func (c *Coordinator) tick(e *Event) {
	due := c.c.Every > 0 && e.At-c.begunAt >= c.c.Every || c.c.EveryUpdates > 0 && e.Version-c.begunVersion >= c.c.EveryUpdates
	if !due || c.stopped || e.Spent || c.phase != idle || c.replica.busy {
		return
	}
	c.phase, c.diskBusy, c.begunAt, c.begunVersion = beginning, true, e.At, e.Version
	c.named, c.failure, c.files = false, "", c.files[:0]
	c.emit(Effect{Kind: Begin})
}

// begun notes that the folder is there, or cannot be made.
func (c *Coordinator) begun(e *Event) {
	c.diskBusy = false
	if e.Problem != "" {
		c.phase = idle
		c.emit(Effect{Kind: Lost, Problem: e.Problem})
		return
	}
	c.hasDraft = true
	if c.stopped {
		c.abandon("")
		return
	}
	c.phase = collecting
	c.replica.begin(&c.c, e.Number)
	if c.c.Pauses {
		c.pausing = true
		c.emit(Effect{Kind: Pause})
	} else {
		c.emit(Effect{Kind: Name})
	}
}

// saved notes a file. With the last file it finishes the checkpoint, or gives it up.
func (c *Coordinator) saved(f *wire.FileSaved) {
	switch f.Place {
	case wire.OnHost:
		c.tellHost()
		return
	case wire.InFolder:
	default:
		c.filesHeard++
		if c.replica.saved(&c.c, f, c.diverged) {
			c.tellHost()
		}
		return
	}
	c.filesHeard++
	if f.Failed && c.failure == "" {
		c.failure = c.c.unwritten(f.Rank)
	}
	if c.files = append(c.files, *f); len(c.files) < c.c.Files {
		return
	}
	if c.diverged != "" {
		c.failure = c.diverged // the saved parameters may be worth nothing
	}
	if !c.named && c.failure == "" {
		c.failure = "the lead shard did not name the version"
	}
	if c.failure != "" {
		c.abandon(c.failure)
		return
	}
	slices.SortFunc(c.files, func(a, b wire.FileSaved) int { return cmpFiles(&a, &b) })
	c.phase, c.diskBusy = finishing, true
	c.emit(Effect{Kind: Finish, Files: c.files})
}

func cmpFiles(a, b *wire.FileSaved) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	return int(a.Index) - int(b.Index)
}

// abandon gives up the current checkpoint. why is empty where training has ended, which needs no report.
func (c *Coordinator) abandon(why string) {
	c.phase, c.diskBusy = finishing, true
	c.emit(Effect{Kind: Abandon, Problem: why})
}

// finished notes that the checkpoint has its name, or is gone.
func (c *Coordinator) finished(e *Event) {
	c.diskBusy, c.hasDraft, c.phase = false, false, idle
	if e.Folder == "" {
		if e.Problem != "" {
			c.emit(Effect{Kind: Lost, Problem: e.Problem})
		}
		return
	}
	c.emit(Effect{Kind: Made, Folder: e.Folder, Problem: e.Problem})
	if c.c.Judges && !c.cutShort {
		c.phase = judging
		c.emit(Effect{Kind: Judge, Folder: e.Folder})
	}
}

// nodesDone decides why all nodes are done: for a pause, after which new nodes resume, or because training is over.
func (c *Coordinator) nodesDone(spent bool) {
	on := c.pausing && !c.stopped && !spent
	c.pausing = false
	if on {
		c.emit(Effect{Kind: GoOn})
		return
	}
	c.stopped = true
	c.emit(Effect{Kind: End})
}

// settleIfOver gives Settled when training is over and nobody writes any more. It gives up a checkpoint whose version
// the run never made.
func (c *Coordinator) settleIfOver() {
	if !c.over || c.settled || c.filesHeard < c.filesTold || c.diskBusy || c.phase == judging || c.replica.telling {
		return
	}
	if c.hasDraft {
		c.abandon("")
		return
	}
	c.settled = true
	c.emit(Effect{Kind: Settled})
}
