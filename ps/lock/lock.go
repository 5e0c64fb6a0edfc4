// Package lock lets one run at a time write a run folder.
//
// The lock is a file that is created exclusively, which holds on all file systems that clusters share (NFS since version 3,
// Lustre, GPFS), where flock may hold on one host only. Its owner counts in it, every Beat. Nobody's clock is compared with
// another's: who finds the file looks at whether the count moves. A lock is stale, and taken over,
//
//   - at once, where its process was on this host and is no more,
//   - at once, where the batch system has started its job again: it ends all of a job before it does,
//   - else when the count has stood still for Silence.
//
// An owner that was taken for dead and is not, one that was stopped for instance, learns so with its next count.
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

	"fluentps/ps/durable"
	"fluentps/ps/foreign"
)

// Name is the file of the lock in the run folder.
const Name = "run.lock"

const (
	// Beat is how often an owner shows that it lives.
	Beat = 5 * time.Second
	// Silence is how long a lock must show no life before it is taken over.
	Silence   = looksMax * lookEvery
	lookEvery = 200 * time.Millisecond
	looksMax  = 150 // counted, so that neither a stopped reader nor a file system that hangs makes others look dead
	sayAfter  = 5   // looks: what has just been killed is gone by then
	awayLooks = 5   // where somebody who errs moves the lock aside and puts it back
)

// Owner is who holds a lock.
type Owner struct {
	Host     string    `json:"host"`
	PID      int       `json:"pid"`
	Job      string    `json:"job,omitempty"`      // number in the batch system; "": none
	Restarts int       `json:"restarts,omitempty"` // how often the batch system has started the job again
	Since    time.Time `json:"since"`

	Machine string `json:"machine,omitempty"` // where PID counts: a boot and a namespace of processes; "" if that is not known
	Started string `json:"started,omitempty"` // when that process did: another may have its number now
	Token   string `json:"token"`             // of this lock only
}

func (o *Owner) String() string {
	if o.Token == "" {
		return "a process that did not say which"
	}
	text := fmt.Sprintf("process %d on %s, since %s", o.PID, foreign.Word(o.Host), o.Since.UTC().Format(time.RFC3339))
	if o.Job != "" {
		text = "job " + foreign.Word(o.Job) + ", " + text
	}
	return text
}

// stop is the command that ends it, "" where what it says of itself can be none of a run: nobody shall type what somebody else
// has written.
func (o *Owner) stop() string {
	switch {
	case o.Job != "" && foreign.IsJob(o.Job):
		return "scancel " + o.Job
	case o.Job == "" && o.PID > 1:
		return "kill " + strconv.Itoa(o.PID) + " there"
	}
	return ""
}

// HeldError says that another run writes the folder.
type HeldError struct {
	Dir   string
	Owner Owner
}

func (e *HeldError) Error() string {
	way := "wait for its end, or stop it"
	if stop := e.Owner.stop(); stop != "" {
		way += " (" + stop + ")"
	}
	if e.Owner.Token == "" { // nobody to ask whether it lives
		way += "; if no run writes the folder, remove " + e.Dir + "/" + Name
	}
	return fmt.Sprintf("run folder: %s belongs to a run that goes on: %s; %s, or begin another run in another folder, with --out and without --resume",
		e.Dir, &e.Owner, way)
}

// LostError says that another run has taken over the folder of one that showed no life.
type LostError struct {
	Dir   string
	Owner Owner // the new one; none if the file has gone
}

func (e *LostError) Error() string {
	by := "was removed"
	if e.Owner.Token != "" {
		by = "is now that of " + e.Owner.String()
	}
	return fmt.Sprintf("run folder: the lock %s %s; this run, which showed no life for %s or was requeued meanwhile, leaves the folder to it", e.Dir+"/"+Name, by, Silence)
}

// Lock is held until Release.
type Lock struct {
	in   *durable.Folder
	mine Owner
	f    *os.File
	at   int64 // where the count stands

	stop chan struct{}
	done sync.WaitGroup
}

// Take takes the lock of a folder for this process, which keeps the folder open until the lock is released; me says on which host and for which job it is. It waits, after it has
// said so, where it must find out whether another lives; a *HeldError says that it does. lost is called at most once,
// from another goroutine, when the lock is not this process's any more.
func Take(in *durable.Folder, me Owner, say func(string), lost func(error)) (*Lock, error) {
	l := &Lock{in: in, mine: me, stop: make(chan struct{})}
	dir := in.Path("")
	l.mine.PID, l.mine.Machine, l.mine.Started, l.mine.Token = os.Getpid(), machine(), started(os.Getpid()), rand.Text()
	var seen record
	looks, haveSeen := 0, false // what names no owner has the token of no lock seen, too
	for {
		err := l.create()
		if err == nil {
			l.done.Go(func() { l.count(lost) })
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
			seen, looks, haveSeen = now, 0, true
		case now.count != seen.count:
			return nil, &HeldError{Dir: dir, Owner: now.Owner}
		}
		if err == nil && (now.gone(&l.mine) || looks >= looksMax) {
			if err := l.discard(now.Token); err != nil {
				return nil, fmt.Errorf("run folder: cannot take over the lock of %s: %w", &now.Owner, err)
			}
			looks, haveSeen = 0, false
			continue
		}
		if looks++; looks == sayAfter {
			say(fmt.Sprintf("the run folder %s is locked by %s (file %s); looking for up to %s whether it lives", dir, &now.Owner, Name, Silence))
		}
		time.Sleep(lookEvery)
	}
}

// gone says that the owner is certainly no more.
func (o *Owner) gone(me *Owner) bool {
	if o.Job != "" && o.Job == me.Job && o.Restarts < me.Restarts {
		return true
	}
	return o.Machine != "" && o.Machine == me.Machine && !lives(o.PID, o.Started)
}

// record is what a lock's file holds: its owner in one line, and the count in another.
type record struct {
	Owner
	count string
}

// bytesMax is more than a lock is long: names of hosts and jobs are short.
const bytesMax = 64 << 10

// read reads a lock. One that is not written yet, or damaged, is that of nobody known.
func (l *Lock) read(name string) (record, error) {
	text, err := l.in.ReadFile(name, bytesMax) // opened anew: that is when NFS asks the server
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

func counted(n int64) []byte { return fmt.Appendf(nil, "%016d\n", n) }

// create makes the lock, or says that there is one.
func (l *Lock) create() error {
	f, err := l.in.Create(Name)
	if err != nil {
		return err
	}
	line, err := json.Marshal(l.mine)
	if err == nil {
		line = append(line, '\n')
		l.f, l.at = f, int64(len(line))
		_, err = f.Write(append(line, counted(0)...))
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return errors.Join(err, f.Close(), l.in.Remove(Name))
	}
	return nil
}

// count shows life until the lock is released or lost.
func (l *Lock) count(lost func(error)) {
	tick := time.NewTicker(Beat)
	defer tick.Stop()
	for n := int64(1); ; n++ {
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
		// In the file that this process made, whatever has that name now. An error is no reason to end a run: whoever
		// believes it dead takes the lock, and Check tells.
		if _, err := l.f.WriteAt(counted(n), l.at); err == nil {
			_ = l.f.Sync()
		}
		if err := l.Check(); err != nil {
			lost(err)
			return
		}
	}
}

// Check says by a *LostError that the lock is another's by now. It is asked before what cannot be undone.
func (l *Lock) Check() error {
	for looks := 1; ; looks++ {
		now, err := l.read(Name)
		switch {
		case err == nil && now.Token == l.mine.Token:
			return nil
		case err == nil && now.Token != "":
			return &LostError{Dir: l.in.Path(""), Owner: now.Owner}
		case err != nil && !errors.Is(err, fs.ErrNotExist): // it may still be ours
			return nil
		case looks >= awayLooks:
			return &LostError{Dir: l.in.Path("")}
		}
		time.Sleep(lookEvery)
	}
}

// Release gives the lock back.
func (l *Lock) Release() error {
	close(l.stop)
	l.done.Wait()
	err := l.f.Close()
	if now, unread := l.read(Name); unread == nil && now.Token == l.mine.Token {
		err = errors.Join(err, l.discard(l.mine.Token))
	}
	if err != nil {
		return fmt.Errorf("run folder: give back its lock: %w", err)
	}
	return nil
}

// discard removes the lock with that token and no other. Of those that find the same stale lock only one renames it; who
// comes later and renames the lock that the first one has made by then, puts it back.
func (l *Lock) discard(token string) error {
	aside := Name + "." + l.mine.Token
	if err := l.in.Move(Name, aside); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if moved, err := l.read(aside); err == nil && moved.Token != token {
		_ = l.in.Link(aside, Name) // where that cannot be, its owner learns that it has lost it
	}
	return l.in.Remove(aside)
}
