package external

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"fluentps/ps/workload/shapes"
)

// Options say what to start.
type Options struct {
	Command []string // the program and its arguments; not empty
	Welcome Welcome
	Threads int // of its kernels; 0: the program decides
	// Silence is how long a child may do nothing while its parent waits for it; 0: without end.
	Silence time.Duration
	Log     func(line string) // gets each line that the child writes; may be nil
}

// Welcome is what a child is told of its run, as JSON.
type Welcome struct {
	Mode     string `json:"mode"`   // train or probe
	Worker   int    `json:"worker"` // among the ranks that compute
	Workers  int    `json:"workers"`
	Rank     int    `json:"rank"`
	BatchMax int    `json:"batch_max"` // rows of a STEP
	EvalMax  int    `json:"eval_max"`  // rows of an EVAL
	Rows     int    `json:"rows"`
	TestRows int    `json:"test_rows"`
	Accuracy bool   `json:"accuracy"` // the model counts the samples that it has right
	Sampler  string `json:"sampler"`  // who picks the rows of a STEP: run, or script
	Seed     uint64 `json:"seed"`
	Resumed  bool   `json:"resumed"`
}

// The modes.
const (
	modeTrain = "train"
	modeProbe = "probe"
)

// Child is a program that computes a model. Its models share it: one pass is computed at a time.
type Child struct {
	o       Options
	process *process
	socket  *socket
	shapes  *shapes.Architecture // as the child has bound it
	// keepsState: checkpoints hold state of the child.
	keepsState bool

	pass sync.Mutex // held by the model that computes, from Forward to the end of Backward; locked before mu

	mu      sync.Mutex // guards all below; held during a call
	order   order
	regions []*region
	nextID  int // of a region
	control *control
	steps   uint64 // begun so far
	err     error  // the first failure
	closed  bool
}

// Slot is what a child is used for.
type Slot uint8

const (
	Training Slot = iota
	Evaluation
	slots
)

// Start starts a child, and greets it. It fails unless the child binds exactly the tensors of want.
func Start(o Options, want *shapes.Architecture) (*Child, error) {
	o.Welcome.Mode = modeTrain
	c, err := greeted(o)
	if err != nil {
		return nil, err
	}
	if err := differs(c.shapes, want); err != nil {
		return nil, c.ends(err)
	}
	if err := c.openControl(); err != nil {
		return nil, c.ends(err)
	}
	return c, nil
}

// Probe starts a child once, and returns the architecture that it binds, under the name of the model.
func Probe(o Options) (*shapes.Architecture, error) {
	o.Welcome.Mode = modeProbe
	c, err := greeted(o)
	if err != nil {
		return nil, err
	}
	if err := c.shapes.Check(); err != nil {
		return nil, c.ends(err)
	}
	return c.shapes, c.Close()
}

// greeted starts a child and hears what it binds.
func greeted(o Options) (*Child, error) {
	s, end, err := newPair()
	if err != nil {
		return nil, fmt.Errorf("model external: %w", err)
	}
	c := &Child{o: o, socket: s}
	c.process, err = startProcess(&o, end)
	_ = end.Close()
	if err != nil {
		s.close()
		return nil, fmt.Errorf("model.command: %w", err)
	}
	go func() { // the parent's receive would not hear of the end: processes of the child may keep its end of the pair
		<-c.process.ended
		s.wake()
	}()
	if err := c.greet(); err != nil {
		return nil, c.ends(err)
	}
	return c, nil
}

// Name is what errors call the child.
func (c *Child) Name() string {
	return fmt.Sprintf("the child %q, process %d", strings.Join(c.o.Command, " "), c.process.cmd.Process.Pid)
}

// Shapes are what the child has bound.
func (c *Child) Shapes() *shapes.Architecture { return c.shapes }

// ends ends the child because of an error, and returns that with what the child has said.
func (c *Child) ends(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fail(err)
}

// tracebackMax is how long a child that has reported its failure may take to write the rest and to end.
const tracebackMax = 2 * time.Second

// fail ends the child. The first error stays. The caller holds mu.
func (c *Child) fail(err error) error {
	if c.err != nil {
		return c.err
	}
	var said *failed
	hasEnded := (errors.As(err, &said) || errors.Is(err, errEnded)) && c.process.hasEnded(tracebackMax)
	if errors.Is(err, errEnded) {
		if err = errors.New("has closed its end of the connection, and goes on without its parent"); hasEnded {
			err = errors.New(c.process.end())
		}
	}
	c.finish() // then all lines are heard
	lines := c.process.lastLines()
	text := ""
	if len(lines) > 0 {
		text = "; it has written last:\n    " + strings.Join(lines, "\n    ")
	}
	c.err = fmt.Errorf("%s: %w%s", c.Name(), err, text)
	return c.err
}

// failed is a child's own report.
type failed struct{ text string }

func (f *failed) Error() string { return "has failed: " + f.text }

// finish ends the process and frees what the parent has of it. The memory stays: others may still read it.
func (c *Child) finish() {
	if !c.closed {
		c.closed = true
		c.process.kill()
		c.socket.close()
	}
}

// endMax is how long a child may take to end by itself: it may write files.
const endMax = 5 * time.Minute

// Close says BYE, and waits until the child has ended by itself. It fails if that ends with another exit code than 0. A child in the middle
// of a pass is ended at once. Models may not be used any more, nor the memory of Room.
func (c *Child) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.bye()
	for _, r := range c.regions {
		err = errors.Join(err, r.free())
	}
	c.regions = nil
	return err
}

func (c *Child) bye() error {
	if c.closed {
		return c.err
	}
	if c.order.state != idle { // the run has failed elsewhere, between Forward and Backward
		c.finish()
		return nil
	}
	if err := c.send(&Message{Kind: Bye}, nil); err != nil {
		return c.fail(err)
	}
	if !c.process.hasEnded(endMax) {
		return c.fail(fmt.Errorf("still runs %v after training has ended: a program ends when ps.steps does", endMax))
	}
	if code := c.process.cmd.ProcessState.ExitCode(); code != 0 {
		return c.fail(errors.New(c.process.end() + " after training"))
	}
	c.finish()
	return nil
}

// usable says why a child cannot be used; nil: it can. The caller holds mu.
func (c *Child) usable() error {
	if c.err == nil && c.closed {
		return c.fail(errClosed)
	}
	return c.err
}

var errClosed = errors.New("is used after Close")

// send sends a message, in order. It waits while the child takes none.
func (c *Child) send(m *Message, file *os.File) error {
	if c.closed {
		return errClosed
	}
	c.order.sent(m.Kind)
	w := c.watch()
	for {
		err := c.socket.send(m, file)
		if err == errEnded {
			return c.lastWord()
		}
		if err != errLook {
			return err
		}
		if err := w.look(); err != nil {
			return err
		}
	}
}

// receive waits for the next message of the child, and checks that it may come now.
func (c *Child) receive() (m Message, err error) {
	w := c.watch()
	for {
		b, err := c.socket.receive()
		if err == errLook {
			if err := w.look(); err != nil {
				return m, err
			}
			continue
		}
		if err != nil {
			return m, err
		}
		if m, err = c.understood(b); err == nil && m.Kind == Fail {
			err = reported(&m)
		}
		return m, err
	}
}

// understood reads a packet, and checks that it may come now.
func (c *Child) understood(b []byte) (m Message, err error) {
	if m, err = decode(b); err != nil {
		return m, fmt.Errorf("has sent %w: see PROTOCOL.md", err)
	}
	if err := c.order.got(&m); err != nil {
		return m, fmt.Errorf("has sent %w", err)
	}
	return m, nil
}

func reported(m *Message) *failed { return &failed{strings.ToValidUTF8(string(m.Text), "\ufffd")} }

// lastWord is why a child has gone that takes no message any more: the first message that it should not have sent, or its report.
func (c *Child) lastWord() error {
	for {
		b, err := c.socket.receive()
		if err != nil {
			return errEnded
		}
		m, err := c.understood(b)
		if err != nil {
			return err
		}
		if m.Kind == Fail {
			return reported(&m)
		}
	}
}

// watch notices a child that does nothing while its parent waits for it.
type watch struct {
	c     *Child
	last  activity
	since time.Time // of the last activity; zero: none was read
}

func (c *Child) watch() watch { return watch{c: c} }

// look fails if the child has done nothing for too long. A child that waits for a disk does something.
func (w *watch) look() error {
	most := w.c.o.Silence
	if most <= 0 {
		return nil
	}
	a := w.c.process.activity()
	now := time.Now()
	if w.since.IsZero() || a.ticks != w.last.ticks || a.onDisk {
		w.last, w.since = a, now
		return nil
	}
	if now.Sub(w.since) < most {
		return nil
	}
	if a.stopped {
		return fmt.Errorf("was stopped by a signal, such as SIGSTOP, %v ago (stall.peer)", most)
	}
	return fmt.Errorf("has sent nothing and computed nothing for %v (stall.peer), where %s is expected: does it wait for something? "+
		"raise stall.peer if it does so on purpose", most, expects[w.c.order.state])
}

// hello is the parent's part of the greeting.
func (c *Child) hello() error {
	text, err := json.Marshal(c.o.Welcome)
	if err != nil {
		return err
	}
	return c.send(&Message{Kind: Hello, A: Version, Text: text}, nil)
}

// Kill ends the child at once, in the middle of a pass, too: whoever waits for it gets an error. c may be nil.
func (c *Child) Kill() {
	if c != nil {
		c.process.kill()
	}
}
