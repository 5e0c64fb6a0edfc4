package verbs

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"fluentps/internal/show/metrics"
)

// outlet is standard output or standard error of a run. When its reader is gone, because a pipe is closed or a terminal has
// ended, outlet asks the run to stop, once. Later output goes to the run folder alone. Without outlet the system would end the
// process at the next line, and the training since the last checkpoint would be lost.
type outlet struct {
	w        io.Writer
	terminal bool
	signals  chan<- os.Signal
	closed   atomic.Bool // the reader is gone: all later writes are dropped
}

// outputClosed is what outlet sends to interrupts. Its text names the cause of the stop.
const outputClosed = outputSignal(metrics.OutputClosed + ", which nobody reads any more")

// outputSignal is a request to stop that no signal of the system stands for.
type outputSignal string

func (outputSignal) Signal()          {}
func (s outputSignal) String() string { return string(s) }

// keepPipes makes a write to a closed pipe return an error. By default SIGPIPE would end the process.
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
	if o.closed.Load() {
		return len(p), nil
	}
	n, err := o.w.Write(p)
	if !errors.Is(err, syscall.EPIPE) && !(o.terminal && errors.Is(err, syscall.EIO)) {
		return n, err
	}
	if !o.closed.Swap(true) {
		select {
		case o.signals <- outputClosed:
		default: // the channel is full of other requests to stop
		}
	}
	return len(p), nil
}
