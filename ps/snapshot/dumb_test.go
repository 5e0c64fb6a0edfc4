package snapshot

import (
	"slices"
	"time"

	"fluentps/comm/wire"
)

// dumb is a second coordinator, which keeps nothing but all that has been said so far, and looks it up.
type dumb struct {
	c       Config
	at      time.Duration
	version int64
	log     []said
}

// said is an event, or an effect where it is one.
type said struct {
	event   Event
	effect  *Effect
	problem string
}

func (d *dumb) last(is func(said) bool) int {
	for i := len(d.log) - 1; i >= 0; i-- {
		if is(d.log[i]) {
			return i
		}
	}
	return -1
}

func (d *dumb) did(kinds ...EffectKind) int {
	return d.last(func(s said) bool { return s.effect != nil && slices.Contains(kinds, s.effect.Kind) })
}

func (d *dumb) heard(kinds ...EventKind) int {
	return d.last(func(s said) bool { return s.effect == nil && slices.Contains(kinds, s.event.Kind) })
}

// files are those of a place that were told since an entry.
func (d *dumb) files(from int, places ...wire.FilePlace) (list []wire.FileSaved) {
	for _, s := range d.log[from+1:] {
		if s.effect == nil && s.event.Kind == Saved && slices.Contains(places, s.event.File.Place) {
			list = append(list, s.event.File)
		}
	}
	return list
}

func (d *dumb) stopped() bool { return max(d.heard(Stop, Over), d.did(End)) >= 0 }

func (d *dumb) diverged() string {
	for _, s := range slices.Backward(d.log) {
		if s.effect == nil && s.event.Kind == Stop && s.event.Problem != "" {
			return s.event.Problem
		}
	}
	return ""
}

// atDisk: rank 0 was sent to the folder and has not come back.
func (d *dumb) atDisk() bool { return d.did(Begin, Finish, Abandon) > d.heard(Begun, Finished) }

// drafting: a folder was made, and neither named nor removed.
func (d *dumb) drafting() bool {
	made := d.last(func(s said) bool { return s.effect == nil && s.event.Kind == Begun && s.event.Problem == "" })
	return made > d.heard(Finished)
}

func (d *dumb) judging() bool { return d.did(Judge) > d.heard(Judged) }

func known(s said) bool {
	return s.effect == nil && s.event.Kind == Saved && s.event.File.Place == wire.OnHost
}

// telling: a host was told and has not answered.
func (d *dumb) telling() bool { return d.did(Tell) > d.last(known) }

// asked is where the checkpoint that is made was asked for, which the files that come are of.
func (d *dumb) asked() int { return d.did(Name, Pause) }

func (d *dumb) replicaBegun() bool { return d.c.Hosts != nil && d.asked() >= 0 }

// replicaWhole says whether nothing is missing of the replica, and what is wrong with it.
func (d *dumb) replicaWhole() (whole bool, problem string, files []wire.FileSaved) {
	want := d.c.Files
	if d.c.Copies {
		want *= 2
	}
	diverged := ""
	for _, s := range d.log[d.asked()+1:] { // in the order in which things were heard: what is wrong last counts
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
	last := d.did(Tell)
	return last < d.asked() || d.telling() || d.log[last].effect.Host != d.c.Hosts[len(d.c.Hosts)-1]
}

// tellNext tells the host behind the one that was told last, if there is one.
func (d *dumb) tellNext() (out []Effect) {
	next := 0
	if last := d.did(Tell); last > d.asked() {
		next = slices.Index(d.c.Hosts, d.log[last].effect.Host) + 1
	}
	if next >= len(d.c.Hosts) {
		return nil
	}
	_, problem, files := d.replicaWhole()
	begun := d.log[d.heard(Begun)].event
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
	entry := said{event: e, problem: d.diverged()}
	due := d.c.Every > 0 && e.At-d.at >= d.c.Every || d.c.EveryUpdates > 0 && e.Version-d.version >= d.c.EveryUpdates
	free := !d.atDisk() && !d.drafting() && !d.judging() && !d.replicaBusy() && !d.stopped()
	pausing := d.did(Pause) > d.heard(NodesDone)
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
		d.log = append(d.log, said{effect: &e})
	}
}

func (d *dumb) fileSaved(f *wire.FileSaved) []Effect {
	switch f.Place {
	case wire.OnHost:
		return d.tellNext()
	case wire.InMemory, wire.InNeighbor:
		if whole, _, _ := d.replicaWhole(); whole && d.did(Tell) < d.asked() {
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
	if problem == "" && d.heard(Named) < d.asked() {
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
	case e.Folder != "" && d.c.Judges && d.last(func(s said) bool { return s.effect == nil && s.event.Kind == Stop && s.event.Cut }) < 0:
		return []Effect{{Kind: Made, Folder: e.Folder, Problem: e.Problem}, {Kind: Judge, Folder: e.Folder}}
	case e.Folder != "":
		return []Effect{{Kind: Made, Folder: e.Folder, Problem: e.Problem}}
	case e.Problem != "":
		return []Effect{{Kind: Lost, Problem: e.Problem}}
	}
	return nil
}

// end is what the end of the run leads to.
func (d *dumb) end() []Effect {
	over := d.heard(Over)
	if over < 0 || d.did(Settled) >= 0 || int64(len(d.files(-1, wire.InFolder, wire.InMemory, wire.InNeighbor))) < d.log[over].event.Told || d.atDisk() || d.judging() || d.telling() {
		return nil
	}
	if d.drafting() {
		return []Effect{{Kind: Abandon}}
	}
	return []Effect{{Kind: Settled}}
}
