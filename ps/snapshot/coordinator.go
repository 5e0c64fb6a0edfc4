// Package snapshot coordinates the checkpoints of a run: when one is begun, which files it has, when it is whole and gets its
// name, what of it lies in the memories of hosts, and whether the nodes that are done go on or have ended. It is pure: rank 0
// tells a Coordinator what has happened, and does what it answers.
//
// A checkpoint is one cut. Where versions are cuts the lead shard names one ahead (ps/core/resume.go); else all workers pause
// (ps/core/pause.go). Whoever has a part of it writes its file and tells rank 0. The manifest comes last, and only with all
// files: what has a name is whole.
package snapshot

import (
	"slices"
	"time"

	"fluentps/comm/wire"
)

// Config is what a coordinator is made with.
type Config struct {
	Every        time.Duration           // of training between two checkpoints; 0: by updates
	EveryUpdates int64                   // versions of the lead shard between them; 0: by time
	Files        int                     // that a checkpoint has
	Pauses       bool                    // versions are no cuts: all workers stop for one
	Judges       bool                    // each is looked at when it has its name, before the next is begun
	Hosts        []int32                 // first ranks of the hosts that keep replicas in memory; nil: there are none
	Copies       bool                    // each file in the memory of a host is sent to the next host, too
	Place        func(rank int32) string // names a rank; nil: by its number
}

// Coordinator is rank 0's knowledge of the checkpoints of a run.
type Coordinator struct {
	c       Config
	phase   phase
	at      time.Duration // when the last checkpoint was begun
	version int64         // of the lead shard then
	draft   bool          // a folder without a name is there
	disk    bool          // rank 0 is at that folder, and says when it has left
	named   bool          // the lead shard has come to the version
	files   []wire.FileSaved
	failed  string // why the checkpoint is worth nothing; "": it is not

	pausing  bool // all workers have been asked to stop, so that they go on
	stopped  bool // training ends: nothing more is begun
	cut      bool // and was cut short: nothing more is looked at
	diverged string
	over     bool  // it has ended
	heard    int64 // files that rank 0 was told of, in folders and memories
	told     int64 // that all ranks have told, when training is over
	settled  bool

	replica replica
	out     []Effect
}

// phase is how far a checkpoint is.
type phase uint8

const (
	idle      phase = iota
	beginning       // its folder is made
	collecting
	finishing // it gets its name, or goes
	judging
)

// New makes one for a run whose last checkpoint was at a time of training and a version.
func New(c Config, at time.Duration, version int64) *Coordinator {
	return &Coordinator{c: c, at: at, version: version}
}

// Pausing says that all workers have been asked to stop, so that a checkpoint can be made, and will go on.
func (c *Coordinator) Pausing() bool { return c.pausing }

// Step takes an event and answers with what is to be done, in this order. The slice is used again by the next Step.
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
			c.failed = e.Problem
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
		c.stopped, c.cut = true, c.cut || e.Cut
		if e.Problem != "" {
			c.diverged = e.Problem
		}
	case NodesDone:
		c.nodesDone(e.Spent)
	case Over:
		c.stopped, c.over, c.told = true, true, e.Told
	}
	c.settle()
	return c.out
}

func (c *Coordinator) say(e Effect) { c.out = append(c.out, e) }

// tick begins a checkpoint when it is time to.
func (c *Coordinator) tick(e *Event) {
	due := c.c.Every > 0 && e.At-c.at >= c.c.Every || c.c.EveryUpdates > 0 && e.Version-c.version >= c.c.EveryUpdates
	if !due || c.stopped || e.Spent || c.phase != idle || c.replica.busy {
		return
	}
	c.phase, c.disk, c.at, c.version = beginning, true, e.At, e.Version
	c.named, c.failed, c.files = false, "", c.files[:0]
	c.say(Effect{Kind: Begin})
}

// begun is told that the folder is there, or cannot be made.
func (c *Coordinator) begun(e *Event) {
	c.disk = false
	if e.Problem != "" {
		c.phase = idle
		c.say(Effect{Kind: Lost, Problem: e.Problem})
		return
	}
	c.draft = true
	if c.stopped {
		c.abandon("")
		return
	}
	c.phase = collecting
	c.replica.begin(&c.c, e.Number)
	if c.c.Pauses {
		c.pausing = true
		c.say(Effect{Kind: Pause})
	} else {
		c.say(Effect{Kind: Name})
	}
}

// saved is told of a file, and ends the checkpoint with the last one.
func (c *Coordinator) saved(f *wire.FileSaved) {
	switch f.Place {
	case wire.OnHost:
		c.tellHost()
		return
	case wire.InFolder:
	default:
		c.heard++
		if c.replica.saved(&c.c, f, c.diverged) {
			c.tellHost()
		}
		return
	}
	c.heard++
	if f.Failed && c.failed == "" {
		c.failed = c.c.unwritten(f.Rank)
	}
	if c.files = append(c.files, *f); len(c.files) < c.c.Files {
		return
	}
	if c.diverged != "" {
		c.failed = c.diverged // what was saved may be worth nothing
	}
	if !c.named && c.failed == "" {
		c.failed = "the lead shard did not name the version"
	}
	if c.failed != "" {
		c.abandon(c.failed)
		return
	}
	slices.SortFunc(c.files, func(a, b wire.FileSaved) int { return cmpFiles(&a, &b) })
	c.phase, c.disk = finishing, true
	c.say(Effect{Kind: Finish, Files: c.files})
}

func cmpFiles(a, b *wire.FileSaved) int {
	if a.Kind != b.Kind {
		return int(a.Kind) - int(b.Kind)
	}
	return int(a.Index) - int(b.Index)
}

// abandon gives up the checkpoint that is begun; "": because training has ended, which nobody needs to be told.
func (c *Coordinator) abandon(why string) {
	c.phase, c.disk = finishing, true
	c.say(Effect{Kind: Abandon, Problem: why})
}

// finished is told that the checkpoint has its name, or is gone.
func (c *Coordinator) finished(e *Event) {
	c.disk, c.draft, c.phase = false, false, idle
	if e.Folder == "" {
		if e.Problem != "" {
			c.say(Effect{Kind: Lost, Problem: e.Problem})
		}
		return
	}
	c.say(Effect{Kind: Made, Folder: e.Folder, Problem: e.Problem})
	if c.c.Judges && !c.cut {
		c.phase = judging
		c.say(Effect{Kind: Judge, Folder: e.Folder})
	}
}

// nodesDone decides what it means that all nodes are done: they paused, and go on, or training is over.
func (c *Coordinator) nodesDone(spent bool) {
	on := c.pausing && !c.stopped && !spent
	c.pausing = false
	if on {
		c.say(Effect{Kind: GoOn})
		return
	}
	c.stopped = true
	c.say(Effect{Kind: End})
}

// settle says, when training is over, that nobody writes any more. A checkpoint whose version the run did not come to is
// given up.
func (c *Coordinator) settle() {
	if !c.over || c.settled || c.heard < c.told || c.disk || c.phase == judging || c.replica.telling {
		return
	}
	if c.draft {
		c.abandon("")
		return
	}
	c.settled = true
	c.say(Effect{Kind: Settled})
}
