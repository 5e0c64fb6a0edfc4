package external

import (
	"math"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"fluentps/ps/workload/external/externaltest"
)

// A model that can see that all has arrived, and that gradients may be overwritten, says HAVE once, and GO before it has heard the loss.
// One that sees less says more: each layer by itself, and GO behind FORWARD.
func TestWhatAModelSeesItNeedNotAskFor(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	for name, c := range map[string]struct {
		looks Looks
		want  []Kind // of the parent, up to FORWARD
	}{
		"nothing":   {Looks{}, []Kind{Step, Have, Have}},
		"not yet":   {Looks{no, no}, []Kind{Step, Have, Have}},
		"readable":  {Looks{yes, no}, []Kind{Step, Have}},
		"all":       {Looks{yes, yes}, []Kind{Step, Have, Go}},
		"unusually": {Looks{no, yes}, []Kind{Step, Have, Have, Go}},
	} {
		t.Run(name, func(t *testing.T) {
			child, fd := pretended(t)
			defer unix.Close(fd)
			child.shapes, child.order = externaltest.Shapes(), order{state: idle, ready: make([]bool, 2)}
			if err := child.openControl(); err != nil {
				t.Fatal(err)
			}
			s := &stranger{fd: fd, isBad: true} // it checks nothing
			heard := make(chan []Kind, 1)
			go playStep(s, len(c.want), heard)
			m := child.Model(Training)
			m.Bind(apart(), apart())
			m.Look(c.looks)
			if _, _, err := m.Forward(rowsOf(1, 2), func(int) {}); err != nil {
				t.Fatal(err)
			}
			if err := m.Backward(nil); err != nil {
				t.Fatal(err)
			}
			want := c.want
			if !slices.Contains(want, Go) {
				want = append(want, Go)
			}
			if got := <-heard; !slices.Equal(got, want) {
				t.Errorf("the parent says %v, and FORWARD comes behind %d of them; want %v", got, len(c.want), want)
			}
			child.Kill()
			_ = child.Close()
		})
	}
}

// playStep plays a step, whose FORWARD comes behind n messages, and says what it has heard up to GO.
func playStep(s *stranger, n int, heard chan<- []Kind) {
	var kinds []Kind
	defer func() { heard <- kinds }()
	hears := func() {
		if m, ok := s.hears(); ok && (m.Kind == Step || len(kinds) > 0) {
			kinds = append(kinds, m.Kind)
		}
	}
	says := func(m Message) { _ = unix.Sendmsg(s.fd, m.appendTo(nil), nil, nil, unix.MSG_NOSIGNAL) }
	for range 100 { // MAP and PLACE come first
		if len(kinds) < n {
			hears()
		}
	}
	says(Message{Kind: Forward, Flags: HasCorrect, B: math.Float64bits(1)})
	if !slices.Contains(kinds, Go) {
		hears()
	}
	says(Message{Kind: Done, Flags: AllReady})
}
