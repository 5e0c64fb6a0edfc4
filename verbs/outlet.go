package verbs

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"
)

// outlet is standard output or standard error of a run. When nobody reads it any more, because a pipe is closed or a terminal is
// gone, that is a wish to stop, once; what there still is to say goes to the run folder alone. Without it the system
// would end the process at the next line, and what was trained would be lost.
type outlet struct {
	w        io.Writer
	terminal bool
	signals  chan<- os.Signal
	shut     atomic.Bool
}

// unread is the wish as interrupts hears it.
const unread = outputSignal("a closed output, which nobody reads any more")

// outputSignal is no signal of the system.
type outputSignal string

func (outputSignal) Signal()          {}
func (s outputSignal) String() string { return string(s) }

// keepPipes has a write to a closed pipe fail, where it would end the process.
func keepPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

func newOutlet(w io.Writer, signals chan<- os.Signal) *outlet {
	o := &outlet{w: w, signals: signals}
	if f, ok := w.(*os.File); ok {
		o.terminal = term.IsTerminal(int(f.Fd()))
	}
	return o
}

// Write may be called by all ranks of this process.
func (o *outlet) Write(p []byte) (int, error) {
	if o.shut.Load() {
		return len(p), nil
	}
	n, err := o.w.Write(p)
	if !errors.Is(err, syscall.EPIPE) && !(o.terminal && errors.Is(err, syscall.EIO)) {
		return n, err
	}
	if !o.shut.Swap(true) {
		select {
		case o.signals <- unread:
		default: // it is full of wishes to stop
		}
	}
	return len(p), nil
}
