package external

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"fluentps/ps/workload/external/externaltest"
)

// A child gets back the state that it has had, and its next steps are those of a child that has drawn as many numbers.
func TestStateOfAChildComesBack(t *testing.T) {
	leavesNothing(t)
	train := func(m *Model, grads [][]float32, steps int) {
		t.Helper()
		for range steps {
			if _, _, err := m.Forward(rowsOf(1, 2, 3), func(int) {}); err != nil {
				t.Fatal(err)
			}
			if err := m.Backward(func(int) {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin := func() (*Child, *Model, [][]float32) {
		c := started(t, externaltest.Draws, nil)
		m, grads := c.Model(Training), apart()
		m.Bind(externaltest.Values(0), grads)
		return c, m, grads
	}
	first, m, want := begin()
	train(m, want, 3)
	vector, bytes, err := first.State()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(unsafe.Slice((*byte)(unsafe.Pointer(&vector[0])), bytes)); text != "drawn 00003" || !StateFits(vector, bytes) {
		t.Errorf("the state is %q", text)
	}
	train(m, want, 2)
	second, m, got := begin()
	train(m, got, 1)
	if err := second.Restore(vector, bytes); err != nil {
		t.Fatal(err)
	}
	train(m, got, 1)
	if got[0][0] == want[0][0] {
		t.Error("the fourth step has the gradients of the fifth: the child draws nothing")
	}
	train(m, got, 1)
	same(t, "gradient", got, want)
	for _, c := range []*Child{first, second} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		_, _, err := c.State()
		mustSay(t, "a closed child", err, "is used after Close")
	}
}

// A child that keeps nothing is not asked. It cannot get the state of another.
func TestAChildThatKeepsNothing(t *testing.T) {
	leavesNothing(t)
	c := started(t, externaltest.Well, nil)
	if vector, bytes, err := c.State(); err != nil || vector != nil || bytes != 0 {
		t.Errorf("its state is %v, %d bytes, %v", vector, bytes, err)
	}
	mustSay(t, "restore", c.Restore(make([]float32, 3), 11), "keeps no state, but the checkpoint has 11 bytes of it",
		"the program of the checkpoint")
}

func TestBytesOfStateFitTheirVector(t *testing.T) {
	for _, c := range []struct {
		elements int
		bytes    int64
		want     bool
	}{{0, 0, false}, {0, 1, false}, {1, 0, false}, {1, 1, true}, {1, 4, true}, {1, 5, false}, {2, 4, false}, {2, 5, true}, {2, -5, false}} {
		if got := StateFits(make([]float32, c.elements), c.bytes); got != c.want {
			t.Errorf("%d bytes in %d numbers: %v", c.bytes, c.elements, got)
		}
	}
}

// Where a child has gone, its first fault is named and not what it says of the parent's answer.
func TestTheFirstFaultOfAChildThatHasGoneIsNamed(t *testing.T) {
	c, fd := pretended(t)
	c.shapes = externaltest.Shapes()
	c.order = order{state: forwarding, ready: make([]bool, 2)}
	for _, m := range []Message{{Kind: Go}, {Kind: Fail, Text: []byte("what is HAVE?")}} {
		if err := unix.Sendmsg(fd, m.appendTo(nil), nil, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	_ = unix.Close(fd)
	mustSay(t, "a parent that sends", c.tell(&Message{Kind: Have, A: 2}), "has sent GO where FORWARD is expected")
}
