package lock

import (
	"crypto/rand"
	"sync"
	"time"

	"fluentps/internal/disk/durable"
)

// Follower is a rank's view of the lock that rank 0 holds for the start of both.
type Follower struct {
	in    *durable.Folder
	place *durable.Place
	start string
	lost  func(error)
	once  sync.Once
	stop  chan struct{}
}

// Follow looks every so often whether the folder still belongs to a start and lies where it was, on a goroutine of its own,
// because a file system may hang. It calls lost at most once, from any goroutine. The folder must stay open until Close.
func Follow(in *durable.Folder, start string, every time.Duration, lost func(error)) *Follower {
	f := &Follower{in: in, place: in.Place(), start: start, lost: lost, stop: make(chan struct{})}
	go func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-f.stop:
				return
			case <-tick.C:
			}
			if f.Check() != nil {
				return
			}
		}
	}()
	return f
}

// Check returns a *LostError if the folder belongs to another start now, or does not lie where it was. No lock, or one that
// cannot be read, says nothing: rank 0 removes it at the end, and not all hosts need to see the folder.
func (f *Follower) Check() error {
	lost := &LostError{Dir: f.in.Path(""), Exchange: exchanged(f.place)}
	if lost.Exchange == nil {
		now, err := readRecord(f.in, Name)
		if err != nil || now.Token == "" || now.Start == f.start {
			return nil
		}
		lost.Owner = now.Owner
	}
	f.once.Do(func() { f.lost(lost) })
	return lost
}

// Watcher is a supervisor's view of the run folder of all its starts.
type Watcher struct {
	in    *durable.Folder
	place *durable.Place
}

// Watch opens a folder to watch where it lies. A folder that cannot be opened here is not watched.
func Watch(dir string) *Watcher {
	in := durable.Below(dir)
	return &Watcher{in, in.Place()}
}

// Check returns a *LostError if the folder does not lie where it was.
func (w *Watcher) Check() error {
	if x := exchanged(w.place); x != nil {
		return &LostError{Dir: w.in.Path(""), Exchange: x}
	}
	return nil
}

// Close closes the folder.
func (w *Watcher) Close() error { return w.in.Close() }

// exchanged is Exchanged, asked again until it is certain.
func exchanged(p *durable.Place) *durable.Exchange {
	for polls := 1; ; polls++ {
		x := p.Exchanged()
		if x == nil || polls >= pollsMissingMax {
			return x
		}
		time.Sleep(pollEvery)
	}
}

// StartIn is the token of the start that holds the lock of a folder; "": nobody holds it, or it has no token.
func StartIn(in *durable.Folder) string {
	now, err := readRecord(in, Name)
	if err != nil {
		return ""
	}
	return now.Start
}

// Clear removes the lock that a start has left in a run folder, or an earlier one of its series: if its process was one of this host and
// has ended, or wherever that process is, if finished says that the run of that start has ended well. It is for who makes the starts of a
// series, when there will be no other. Anybody else's lock stays, and so does one that cannot be read.
func Clear(dir, start string, finished bool) error {
	in := durable.Below(dir)
	defer in.Close()
	now, err := readRecord(in, Name)
	if err != nil || now.Start != start && !IsEarlier(now.Start, start) || !finished && !now.isDead(&Owner{Machine: machine()}) {
		return nil
	}
	return discard(in, rand.Text(), now.Token)
}

// Close ends the goroutine. It does not wait for it.
func (f *Follower) Close() {
	if f != nil {
		close(f.stop)
	}
}
