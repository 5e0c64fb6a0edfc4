package external

import (
	"fmt"
	"slices"
)

// state is what a child may say next.
type state uint8

const (
	greeting   state = iota // HELLO
	binding                 // TENSOR, BOUND
	idle                    // nothing: it waits for the parent
	filling                 // FILLED
	forwarding              // FORWARD
	hurrying                // FORWARD: GO was said already
	waiting                 // nothing: it waits for GO
	backward                // READY, DONE
	evaluating              // RESULT
	stating                 // STATE
	ended                   // nothing: BYE was said
)

var expects = [...]string{
	greeting: "HELLO", binding: "TENSOR or BOUND", idle: "nothing before the next STEP, EVAL or BYE", filling: "FILLED", forwarding: "FORWARD",
	hurrying: "FORWARD",
	waiting:  "nothing before GO", backward: "READY or DONE", evaluating: "RESULT", stating: "STATE", ended: "nothing behind BYE",
}

// order checks the order of messages. It knows no contents but numbers of layers.
type order struct {
	state state
	ready []bool // by layer, of the present step
	left  int    // layers that are not ready
}

// sent notes a message of the parent. One that may not be sent now is a bug of the parent.
func (o *order) sent(k Kind) {
	next, ok := o.afterSent(k)
	if !ok {
		panic(fmt.Sprintf("external: %v is sent to a child of which %s is expected", k, expects[o.state]))
	}
	if o.state = next; k == Go { // the ready are those of a step before
		clear(o.ready)
		o.left = len(o.ready)
	}
}

// afterSent is the state behind a message of the parent.
func (o *order) afterSent(k Kind) (next state, ok bool) {
	switch k {
	case Hello:
		return o.state, o.state == binding
	case Map, Unmap, Place:
		return o.state, o.state == idle
	case Fill:
		return filling, o.state == idle
	case Step:
		return forwarding, o.state == idle
	case Have:
		return o.state, o.state == forwarding
	case Go:
		if o.state == forwarding {
			return hurrying, true
		}
		return backward, o.state == waiting
	case State:
		return stating, o.state == idle
	case Eval:
		return evaluating, o.state == idle
	case Fail:
		return ended, true
	case Bye:
		return ended, o.state == idle
	}
	return o.state, false
}

// got notes a message of the child.
func (o *order) got(m *Message) error {
	next := ended
	switch {
	case m.Kind == Fail:
		return nil
	case o.state == greeting && m.Kind == Hello:
		next = binding
	case o.state == binding && m.Kind == Tensor:
		next = binding
	case o.state == binding && m.Kind == Bound, o.state == filling && m.Kind == Filled, o.state == evaluating && m.Kind == Result,
		o.state == stating && m.Kind == State:
		next = idle
	case o.state == forwarding && m.Kind == Forward:
		next = waiting
	case o.state == hurrying && m.Kind == Forward:
		next = backward
	case o.state == backward && m.Kind == Ready:
		if m.A >= uint32(len(o.ready)) {
			return fmt.Errorf("READY of layer %d, but the model has %d layers", m.A, len(o.ready))
		}
		if o.ready[m.A] {
			return fmt.Errorf("READY of layer %d a second time in one step", m.A)
		}
		o.ready[m.A], next = true, backward
		o.left--
	case o.state == backward && m.Kind == Done:
		if m.Flags == AllReady {
			for l := range o.ready {
				o.ready[l] = true
			}
			o.left = 0
		}
		if o.left > 0 {
			return fmt.Errorf("DONE, but layer %d is not READY: every layer is READY once in a step, also one without a gradient",
				slices.Index(o.ready, false))
		}
		next = idle
	default:
		return fmt.Errorf("%v where %s is expected", m.Kind, expects[o.state])
	}
	o.state = next
	return nil
}
