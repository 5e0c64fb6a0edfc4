package snapshot

import (
	"slices"
	"time"

	"fluentps/internal/comm/wire"
)

// dumb is a second coordinator: its only state is the log of all events and effects, in which it looks everything up.
type dumb struct {
	c       Config
	at      time.Duration
	version int64
	log     []entry
}

// entry is an event, or an effect where effect is not nil.
type entry struct {
	event   Event
	effect  *Effect
	problem string
}

func (d *dumb) last(is func(entry) bool) int {
	for i := len(d.log) - 1; i >= 0; i-- {
		if is(d.log[i]) {
			return i
		}
	}
	return -1
}

func (d *dumb) lastEffect(kinds ...EffectKind) int {
	return d.last(func(s entry) bool { return s.effect != nil && slices.Contains(kinds, s.effect.Kind) })
}

func (d *dumb) lastEvent(kinds ...EventKind) int {
	return d.last(func(s entry) bool { return s.effect == nil && slices.Contains(kinds, s.event.Kind) })
}

// files are the files of some places that were reported since an entry.
func (d *dumb) files(from int, places ...wire.FilePlace) (list []wire.FileSaved) {
	for _, s := range d.log[from+1:] {
		if s.effect == nil && s.event.Kind == Saved && slices.Contains(places, s.event.File.Place) {
			list = append(list, s.event.File)
		}
	}
	return list
}

func (d *dumb) stopped() bool { return max(d.lastEvent(Stop, Over), d.lastEffect(End)) >= 0 }

func (d *dumb) diverged() string {
	for _, s := range slices.Backward(d.log) {
		if s.effect == nil && s.event.Kind == Stop && s.event.Problem != "" {
			return s.event.Problem
		}
	}
	return ""
}

// atDisk says whether rank 0 works on the folder.
func (d *dumb) atDisk() bool {
	return d.lastEffect(Begin, Finish, Abandon) > d.lastEvent(Begun, Finished)
}

// drafting says whether a folder was made, and neither named nor removed.
func (d *dumb) drafting() bool {
	made := d.last(func(s entry) bool { return s.effect == nil && s.event.Kind == Begun && s.event.Problem == "" })
	return made > d.lastEvent(Finished)
}

func (d *dumb) judging() bool { return d.lastEffect(Judge) > d.lastEvent(Judged) }

func isAcknowledged(s entry) bool {
	return s.effect == nil && s.event.Kind == Saved && s.event.File.Place == wire.OnHost
}

// telling says whether a host was told and has not answered.
func (d *dumb) telling() bool { return d.lastEffect(Tell) > d.last(isAcknowledged) }

// asked is the entry that asked for the current checkpoint; files reported after it belong to that checkpoint.
func (d *dumb) asked() int { return d.lastEffect(Name, Pause) }

func (d *dumb) replicaBegun() bool { return d.c.Hosts != nil && d.asked() >= 0 }

// replicaWhole says whether the replica has all files, what is wrong with it, and its files.
func (d *dumb) replicaWhole() (whole bool, problem string, files []wire.FileSaved) {
	want := d.c.Files
	if d.c.Copies {
		want *= 2
	}
	diverged := ""
	for _, s := range d.log[d.asked()+1:] { // in the order of arrival: the last problem counts
		if s.effect != nil || s.event.Kind != Saved || s.event.File.Place != wire.InMemory && s.event.File.Place != wire.InNeighbor {
			continue
		}
		f := s.event.File
		if want--; f.Place == wire.InMemory {
			files = append(files, f)
		}
		if s.problem != "" {
			diverged = s.problem
			problem = diverged
		}
		if f.Failed {
			if problem = d.c.unwritten(f.Rank); f.Place == wire.InMemory && d.c.Copies {
				want--
			}
		}
	}
	return want <= 0, problem, files
}

func (d *dumb) replicaBusy() bool {
	if !d.replicaBegun() {
		return false
	}
	last := d.lastEffect(Tell)
	return last < d.asked() || d.telling() || d.log[last].effect.Host != d.c.Hosts[len(d.c.Hosts)-1]
}

// tellNext tells the host after the one that was told last, if there is one.
func (d *dumb) tellNext() (out []Effect) {
	next := 0
	if last := d.lastEffect(Tell); last > d.asked() {
		next = slices.Index(d.c.Hosts, d.log[last].effect.Host) + 1
	}
	if next >= len(d.c.Hosts) {
		return nil
	}
	_, problem, files := d.replicaWhole()
	begun := d.log[d.lastEvent(Begun)].event
	version := int64(0)
	for _, s := range d.log {
		if s.effect != nil && (s.effect.Kind == Name || s.effect.Kind == Pause) {
			version++
		}
	}
	e := Effect{Kind: Tell, Host: d.c.Hosts[next], Version: version, Number: begun.Number, Problem: problem}
	if problem == "" {
		e.Files = files
	}
	return []Effect{e}
}

func (d *dumb) Step(e Event) []Effect {
	entry := entry{event: e, problem: d.diverged()}
	due := d.c.Every > 0 && e.At-d.at >= d.c.Every || d.c.EveryUpdates > 0 && e.Version-d.version >= d.c.EveryUpdates
	free := !d.atDisk() && !d.drafting() && !d.judging() && !d.replicaBusy() && !d.stopped()
	pausing := d.lastEffect(Pause) > d.lastEvent(NodesDone)
	d.log = append(d.log, entry)
	var out []Effect
	switch e.Kind {
	case Tick:
		if due && free && !e.Spent {
			d.at, d.version = e.At, e.Version
			out = []Effect{{Kind: Begin}}
		}
	case Begun:
		switch {
		case e.Problem != "":
			out = []Effect{{Kind: Lost, Problem: e.Problem}}
		case d.stopped():
			out = []Effect{{Kind: Abandon}}
		case d.c.Pauses:
			out = []Effect{{Kind: Pause}}
		default:
			out = []Effect{{Kind: Name}}
		}
	case Saved:
		out = d.fileSaved(&e.File)
	case Finished:
		out = d.folderDone(&e)
	case NodesDone:
		if out = []Effect{{Kind: End}}; pausing && !e.Spent && !d.stopped() {
			out = []Effect{{Kind: GoOn}}
		}
	}
	d.note(out)
	more := d.end()
	d.note(more)
	return append(out, more...)
}

func (d *dumb) note(effects []Effect) {
	for _, e := range effects {
		e.Files = slices.Clone(e.Files)
		d.log = append(d.log, entry{effect: &e})
	}
}

func (d *dumb) fileSaved(f *wire.FileSaved) []Effect {
	switch f.Place {
	case wire.OnHost:
		return d.tellNext()
	case wire.InMemory, wire.InNeighbor:
		if whole, _, _ := d.replicaWhole(); whole && d.lastEffect(Tell) < d.asked() {
			return d.tellNext()
		}
		return nil
	}
	files := d.files(d.asked(), wire.InFolder)
	if len(files) < d.c.Files {
		return nil
	}
	problem := d.diverged()
	if i := slices.IndexFunc(files, func(f wire.FileSaved) bool { return f.Failed }); i >= 0 && problem == "" {
		problem = d.c.unwritten(files[i].Rank)
	}
	if problem == "" && d.lastEvent(Named) < d.asked() {
		problem = "the lead shard did not name the version"
	}
	if problem != "" {
		return []Effect{{Kind: Abandon, Problem: problem}}
	}
	slices.SortFunc(files, func(a, b wire.FileSaved) int { return (int(a.Kind)-int(b.Kind))*1000 + int(a.Index) - int(b.Index) })
	return []Effect{{Kind: Finish, Files: files}}
}

func (d *dumb) folderDone(e *Event) []Effect {
	switch {
	case e.Folder != "" && d.c.Judges && d.last(func(s entry) bool { return s.effect == nil && s.event.Kind == Stop && s.event.Cut }) < 0:
		return []Effect{{Kind: Made, Folder: e.Folder, Problem: e.Problem}, {Kind: Judge, Folder: e.Folder}}
	case e.Folder != "":
		return []Effect{{Kind: Made, Folder: e.Folder, Problem: e.Problem}}
	case e.Problem != "":
		return []Effect{{Kind: Lost, Problem: e.Problem}}
	}
	return nil
}

// end is the effect that ends the run, when one is due.
func (d *dumb) end() []Effect {
	over := d.lastEvent(Over)
	if over < 0 || d.lastEffect(Settled) >= 0 ||
		int64(len(d.files(-1, wire.InFolder, wire.InMemory, wire.InNeighbor))) < d.log[over].event.Told || d.atDisk() ||
		d.judging() || d.telling() {
		return nil
	}
	if d.drafting() {
		return []Effect{{Kind: Abandon}}
	}
	return []Effect{{Kind: Settled}}
}
