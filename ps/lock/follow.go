package lock

import (
	"sync"
	"time"

	"fluentps/ps/durable"
)

// Follower is a rank's view of the lock that rank 0 holds for the start of both.
type Follower struct {
	in    *durable.Folder
	start string
	lost  func(error)
	once  sync.Once
	stop  chan struct{}
}

// Follow looks every so often whether the folder still belongs to a start, on a goroutine of its own, because a file system
// may hang. It calls lost at most once, from any goroutine. The folder must stay open until Close.
func Follow(in *durable.Folder, start string, every time.Duration, lost func(error)) *Follower {
	f := &Follower{in: in, start: start, lost: lost, stop: make(chan struct{})}
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

// Check returns a *LostError if the folder belongs to another start now. No lock, or one that cannot be read, says nothing:
// rank 0 removes it at the end, and not all hosts need to see the folder.
func (f *Follower) Check() error {
	now, err := readRecord(f.in, Name)
	if err != nil || now.Token == "" || now.Start == f.start {
		return nil
	}
	err = &LostError{Dir: f.in.Path(""), Owner: now.Owner}
	f.once.Do(func() { f.lost(err) })
	return err
}

// StartIn is the token of the start that holds the lock of a folder; "": nobody holds it, or it has no token.
func StartIn(in *durable.Folder) string {
	now, err := readRecord(in, Name)
	if err != nil {
		return ""
	}
	return now.Start
}

// Close ends the goroutine. It does not wait for it.
func (f *Follower) Close() {
	if f != nil {
		close(f.stop)
	}
}
