// Package lock lets one run at a time write a run folder.
//
// The lock is a file that is created exclusively. That works on all file systems that clusters share (NFS since version
// 3, Lustre, GPFS), where flock may work on one host only. The owner increments a counter in the file every Beat. No
// clocks of two hosts are compared: a process that finds the file watches whether the counter moves. A lock is stale,
// and is taken over,
//
//   - at once, if its process ran on this host and has ended,
//   - at once, if the batch system has restarted its job: it ends all processes of a job before that,
//   - at once, if it is of an earlier start of the same series (see Attempt): the launcher of that start has ended,
//   - otherwise when the counter has not moved for Silence.
//
// An owner that was taken for dead but lives, for instance after a SIGSTOP or because its launcher was killed, finds that out
// at its next beat or before it writes a file, and so does each other rank of its start (Follow). So do the ranks of a run whose
// folder was renamed, removed or replaced: nobody would look for what they write where they write it.
package lock

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"fluentps/internal/disk/durable"
	"fluentps/internal/disk/foreign"
)

// Name is the file of the lock in the run folder.
const Name = "run.lock"

const (
	// Beat is how often an owner increments its counter.
	Beat = 5 * time.Second
	// Silence is how long the counter must stand still before the lock is taken over.
	Silence           = pollsMax * pollEvery
	pollEvery         = 200 * time.Millisecond
	pollsMax          = 150 // polls are counted, so that neither a stopped reader nor a file system that hangs makes others look dead
	pollsBeforeReport = 5   // polls before a message: a process that has just been killed is gone by then
	pollsMissingMax   = 5   // polls for which the lock may be missing: a process that mistook it for stale moves it aside and puts it back
)

// Owner is the process that holds a lock.
type Owner struct {
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Job      string    `json:"job,omitempty"`      // number in the batch system; "": none
	Restarts int       `json:"restarts,omitempty"` // how often the batch system has started the job again
	Since    time.Time `json:"since"`

	Machine string `json:"machine,omitempty"` // the boot and process namespace in which PID is valid; "" if not known
	Started string `json:"started,omitempty"` // start time of that process: another one may have its number by now
	Token   string `json:"token"`             // unique to this lock
	Start   string `json:"start,omitempty"`   // token of the start, which all its ranks know
}

func (o *Owner) String() string {
	if o.Token == "" {
		return "an unknown process"
	}
	text := fmt.Sprintf("process %d on %s, since %s", o.PID, foreign.Word(o.Host), o.Since.UTC().Format(time.RFC3339))
	if o.Job != "" {
		text = "job " + foreign.Word(o.Job) + ", " + text
	}
	return text
}

// stopCommand returns the command that ends the owner. It returns "" if the owner's own data cannot be those of a run:
// no user shall type text that another user wrote.
func (o *Owner) stopCommand() string {
	switch {
	case o.Job != "" && foreign.IsJob(o.Job):
		return "scancel " + o.Job
	case o.Job == "" && o.PID > 1:
		return "kill " + strconv.Itoa(o.PID) + " there"
	}
	return ""
}

// HeldError reports that another run writes the folder.
type HeldError struct {
	Dir   string
	Owner Owner
}

func (e *HeldError) Error() string {
	way := "wait for its end, or stop it"
	if stop := e.Owner.stopCommand(); stop != "" {
		way += " (" + stop + ")"
	}
	if e.Owner.Token == "" { // its PID is not known either
		way += "; if no run writes the folder, remove " + e.Dir + "/" + Name
	}
	return fmt.Sprintf(
		"run folder: %s is in use by a run that is alive: %s; %s, or begin another run in another folder, with --out and without --resume",
		e.Dir, &e.Owner, way)
}

// LostError reports that another run has taken over the folder from a run whose counter stood still, or that the folder does not
// lie any more where the run opened it.
type LostError struct {
	Dir      string
	Owner    Owner             // the new owner; zero if the file is missing
	Exchange *durable.Exchange // nil: the folder lies where it was
}

func (e *LostError) Error() string {
	if e.Exchange != nil {
		return "run folder: " + exchangeText(e.Exchange)
	}
	if e.Owner.Token == "" {
		return fmt.Sprintf("run folder: the lock %s was removed, alone or with other files of the folder; this run ends, "+
			"and no longer writes the folder",
			e.Dir+"/"+Name)
	}
	return fmt.Sprintf(
		"run folder: the lock %s is now that of %s; this run, which gave no sign of life for %s or was started again "+
			"meanwhile, no longer writes the folder",
		e.Dir+"/"+Name, &e.Owner, Silence)
}

// exchangeText says what became of a folder, and what the user can do.
func exchangeText(x *durable.Exchange) string {
	name := "nothing has its name now"
	if x.Now != "" {
		name = x.Now + " has its name now"
	}
	switch {
	case x.Moved != "":
		to := foreign.Word(x.Moved)
		return fmt.Sprintf("%s was renamed to %s while the run wrote it, and %s; this run ends, and changes neither of "+
			"them any more; continue from its newest checkpoint with --resume %s",
			x.Path, to, name, to)
	case x.Removed:
		return fmt.Sprintf("%s was removed while the run wrote it, and %s; this run ends, and writes nothing under that "+
			"name any more; if the folder was moved to another file system, continue with --resume and its new path, else start the run again",
			x.Path, name)
	}
	return fmt.Sprintf("%s was exchanged while the run wrote it, and %s; this run ends, and writes nothing under that "+
		"name any more; look for the folder, and continue with --resume and its new path",
		x.Path, name)
}

// Lock is held until Release.
type Lock struct {
	in        *durable.Folder
	place     *durable.Place
	mine      Owner
	f         *os.File
	counterAt int64 // offset of the counter in the file

	stop chan struct{}
	done sync.WaitGroup
}

// Take takes the lock of a folder for this process. The folder must stay open until the lock is released; me gives the
// host and the job. If another process may hold the lock, Take reports that through report and waits to see whether
// that process lives; if so, it returns a *HeldError. It calls lost at most once, from another goroutine, when this
// process does not hold the lock any more.
func Take(in *durable.Folder, me Owner, report func(string), lost func(error)) (*Lock, error) {
	l := &Lock{in: in, place: in.Place(), mine: me, stop: make(chan struct{})}
	dir := in.Path("")
	l.mine.PID, l.mine.Machine, l.mine.Started, l.mine.Token = os.Getpid(), machine(), processStart(os.Getpid()), rand.Text()
	var seen record
	polls, haveSeen := 0, false // haveSeen: a lock without an owner has the zero token, like no lock
	for {
		err := l.create()
		if err == nil {
			l.done.Go(func() { l.heartbeat(lost) })
			return l, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("run folder: cannot lock it; choose one that can be written with --out: %w", err)
		}
		now, err := l.read(Name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // released meanwhile
		case err != nil:
			return nil, fmt.Errorf("run folder: cannot read its lock: %w; if no run writes the folder, remove %s", err, in.Path(Name))
		case !haveSeen || now.Token != seen.Token:
			seen, polls, haveSeen = now, 0, true
		case now.count != seen.count:
			return nil, &HeldError{Dir: dir, Owner: now.Owner}
		}
		if err == nil && (now.isDead(&l.mine) || polls >= pollsMax) {
			if err := l.discard(now.Token); err != nil {
				return nil, fmt.Errorf("run folder: cannot take over the lock of %s: %w", &now.Owner, err)
			}
			polls, haveSeen = 0, false
			continue
		}
		if polls++; polls == pollsBeforeReport {
			report(fmt.Sprintf("the run folder %s is locked by %s (file %s); watching it for up to %s to see whether it is alive",
				dir, &now.Owner, Name, Silence))
		}
		time.Sleep(pollEvery)
	}
}

// isDead returns whether the owner has certainly ended, or has to.
func (o *Owner) isDead(me *Owner) bool {
	if o.Job != "" && o.Job == me.Job && o.Restarts < me.Restarts {
		return true
	}
	if IsEarlier(o.Start, me.Start) {
		return true
	}
	return o.Machine != "" && o.Machine == me.Machine && !isAlive(o.PID, o.Started)
}

// record is the content of a lock's file: the owner on one line, the counter on another.
type record struct {
	Owner
	count string
}

// bytesMax is more than any lock needs: names of hosts and jobs are short.
const bytesMax = 64 << 10

// read reads a lock. A lock that is incomplete or damaged has the zero Owner.
func (l *Lock) read(name string) (record, error) { return readRecord(l.in, name) }

func readRecord(in *durable.Folder, name string) (record, error) {
	text, err := in.ReadFile(name, bytesMax) // opened each time, because NFS asks the server only then
	if err != nil {
		return record{}, err
	}
	line, count, _ := bytes.Cut(text, []byte("\n"))
	r := record{count: string(count)}
	if json.Unmarshal(line, &r.Owner) != nil {
		r.Owner = Owner{}
	}
	return r, nil
}

func counterLine(n int64) []byte { return fmt.Appendf(nil, "%016d\n", n) }

// create creates the lock. The error wraps fs.ErrExist if there is one.
func (l *Lock) create() error {
	f, err := l.in.Create(Name)
	if err != nil {
		return err
	}
	line, err := json.Marshal(l.mine)
	if err == nil {
		line = append(line, '\n')
		l.f, l.counterAt = f, int64(len(line))
		_, err = f.Write(append(line, counterLine(0)...))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Close(), l.in.Remove(Name))
	}
	return nil
}

// heartbeat increments the counter until the lock is released or lost.
func (l *Lock) heartbeat(lost func(error)) {
	tick := time.NewTicker(Beat)
	defer tick.Stop()
	for n := int64(1); ; n++ {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		// This writes to the file that this process created, whatever file has the name now. A failed write is no
		// reason to end the run: if another process believes this one dead, it takes the lock, and Check finds that.
		if _, err := l.f.WriteAt(counterLine(n), l.counterAt); err == nil {
			_ = l.f.Sync()
		}
		if err := l.Check(); err != nil {
			lost(err)
			return
		}
	}
}

// Check returns a *LostError if this process does not hold the lock any more, or if the folder does not lie where it was. Call it
// before an action that cannot be undone.
func (l *Lock) Check() error {
	if x := exchanged(l.place); x != nil {
		return &LostError{Dir: l.in.Path(""), Exchange: x}
	}
	for polls := 1; ; polls++ {
		now, err := l.read(Name)
		switch {
		case err == nil && now.Token == l.mine.Token:
			return nil
		case err == nil && now.Token != "":
			return &LostError{Dir: l.in.Path(""), Owner: now.Owner}
		case err != nil && !errors.Is(err, fs.ErrNotExist): // the lock may still be ours
			return nil
		case polls >= pollsMissingMax:
			return &LostError{Dir: l.in.Path(""), Exchange: l.place.Exchanged()}
		}
		time.Sleep(pollEvery)
	}
}

// Release removes the lock.
func (l *Lock) Release() error {
	close(l.stop)
	l.done.Wait()
	err := l.f.Close()
	if now, unread := l.read(Name); unread == nil && now.Token == l.mine.Token {
		err = errors.Join(err, l.discard(l.mine.Token))
	}
	if err != nil {
		return fmt.Errorf("run folder: release its lock: %w", err)
	}
	return nil
}

// discard removes the lock with that token and no other.
func (l *Lock) discard(token string) error { return discard(l.in, l.mine.Token, token) }

// discard removes the lock of a folder that has a token, and no other; me is unique to the caller. If several processes find the same stale
// lock, only one renames it. A later one may rename the lock that the first has created by then; it puts that back.
func discard(in *durable.Folder, me, token string) error {
	aside := Name + "." + me
	if err := in.Move(Name, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if moved, err := readRecord(in, aside); err == nil && moved.Token != token {
		_ = in.Link(aside, Name) // if that fails, the owner finds that it has lost the lock
	}
	return in.Remove(aside)
}
