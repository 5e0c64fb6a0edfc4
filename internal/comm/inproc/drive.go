package inproc

import (
	"fmt"
	"runtime"

	"fluentps/internal/comm"
)

func (e *endpoint) signal() {
	select {
	case e.wake <- struct{}{}:
	default: // a token is there already
	}
}

// Post adds f to the next batch of the goroutine that drives this rank. After Close, f never runs.
func (e *endpoint) Post(f func()) {
	e.mu.Lock()
	e.posts = append(e.posts, f)
	e.mu.Unlock()
	e.signal()
}

// beginDriving panics in a handler that drives; endDriving is its counterpart.
func (e *endpoint) beginDriving(use string) {
	if e.driving {
		panic(fmt.Sprintf("inproc: %s on rank %d inside a handler", use, e.rank))
	}
	e.driving = true
}

func (e *endpoint) endDriving() { e.driving = false }

func (e *endpoint) stopped() error {
	if abort := e.world.aborted.Load(); abort != nil {
		return abort
	}
	if e.closed {
		return fmt.Errorf("inproc: rank %d: %w", e.rank, comm.ErrClosed)
	}
	return nil
}

// Crowded counts the cores that this process may use.
func (e *endpoint) Crowded() bool { return e.Size() > runtime.GOMAXPROCS(0) }

func (e *endpoint) Drive(until func() bool) error {
	e.beginDriving("Drive")
	defer e.endDriving()
	for {
		if err := e.stopped(); err != nil {
			return err
		}
		if until() {
			return nil
		}
		if !e.progress() {
			<-e.wake
		}
	}
}

func (e *endpoint) Tick() {
	e.beginDriving("Tick")
	defer e.endDriving()
	if e.stopped() == nil {
		e.progress()
	}
}

func (e *endpoint) Barrier() error {
	if err := e.stopped(); err != nil {
		return err
	}
	number := e.world.enterBarrier()
	return e.Drive(func() bool { return e.world.passed.Load() >= number })
}

// progress handles one batch: all messages that have arrived, and the completions that are ready now. It returns
// whether there were any.
func (e *endpoint) progress() bool {
	e.mu.Lock()
	arrived, posts := e.arrived, e.posts
	e.arrived, e.posts = e.spareArrived, e.sparePosts
	e.ready = append(e.ready, e.settled...)
	e.settled = e.settled[:0]
	e.mu.Unlock()

	for _, m := range arrived {
		e.match(m)
	}
	clear(arrived)
	e.spareArrived = arrived[:0]
	batch := e.ready
	e.ready = e.spareReady[:0] // operations that handlers complete wait for the next batch, so that Drive checks its condition first
	e.spareReady = batch
	for _, d := range batch {
		o := e.ops.Take(uint32(d.Op))
		o.release()
		if o.handler != nil {
			o.handler(d)
		}
	}
	for _, f := range posts {
		f()
	}
	clear(posts)
	e.sparePosts = posts[:0]
	return len(arrived)+len(batch)+len(posts) > 0
}

// Close waits for all ranks. It refuses while operations are in flight, and reports messages that
// nobody received, which MPI would call erroneous. After an abort it returns the *AbortError.
func (e *endpoint) Close() error {
	if e.closed {
		return e.stopped()
	}
	if e.world.aborted.Load() == nil && e.ops.Len() > 0 {
		return e.busyError()
	}
	err := e.Barrier()
	if err == nil {
		err = e.unreceivedError()
	}
	e.closed = true
	e.world.closeRank()
	return err
}

func (e *endpoint) busyError() (err error) {
	e.ops.Each(func(slot uint32, o *operation) {
		verb := "send to"
		if o.recv {
			verb = "receive from"
		}
		err = fmt.Errorf("inproc: rank %d closes with %d operations in flight, among them a %s rank %d, channel %d, tag "+
			"%d: wait for sends, cancel receives",
			e.rank, e.ops.Len(), verb, o.from, o.stream.ch, o.stream.tag)
	})
	return err
}

func (e *endpoint) unreceivedError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, m := range e.arrived {
		e.unexpected.Push(m.stream.key(), e.early.Put(m))
	}
	e.arrived = nil
	var first *message
	e.early.Each(func(slot uint32, m *message) {
		if first == nil {
			first = m
		}
	})
	if first == nil {
		return nil
	}
	return fmt.Errorf("inproc: rank %d closes with %d messages that nobody received, among them one of %d bytes from "+
		"rank %d on channel %d, tag %d",
		e.rank, e.early.Len(), len(first.data), first.from.rank, first.stream.ch, first.stream.tag)
}
