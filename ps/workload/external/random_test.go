package external

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"fluentps/ps/workload/external/externaltest"
)

// gone is a process that has ended with code 0. A child whose other end is a goroutine has it.
var gone = sync.OnceValue(func() *process {
	end, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	defer end.Close()
	o := Options{Command: []string{"true"}}
	p, err := startProcess(&o, end)
	if err != nil {
		panic(err)
	}
	<-p.ended
	p.kill()
	return p
})

// pretended is a child that is not greeted yet, and its end.
func pretended(t testing.TB) (*Child, int) {
	t.Helper()
	s, end, err := newPair()
	if err != nil {
		t.Fatal(err)
	}
	o := optionsOf("pretended")
	o.Silence = 0
	fd, err := unix.Dup(int(end.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	_ = end.Close()
	return &Child{o: o, socket: s, process: gone()}, fd
}

// goodTensors are the TENSOR messages of a good child.
func goodTensors() (list []Message) {
	a := externaltest.Shapes()
	for i, p := range a.Params() {
		text := a.Layers[p.Layer].Name + "\n" + p.Name + "\n"
		m := Message{Kind: Tensor, A: uint32(i), B: uint64(p.N())}
		for d, n := range p.Shape {
			if d > 0 {
				text += "x"
			}
			text += string(rune('0' + n))
		}
		if p.Stat {
			m.Flags = IsStatistic
		}
		m.Text = []byte(text)
		list = append(list, m)
	}
	return list
}

// stranger is the other end: a good child, of which now and then a message is another one.
type stranger struct {
	fd     int
	rng    *rand.Rand
	often  float64 // how often
	order  dumb
	rows   uint32 // of the pass
	isBad  bool   // it has sent what may not come; then it is a good child again
	isIdle bool   // it did so when the parent waited for nothing
	sent   []string
}

// hears waits for a message of the parent. ok is false if there is none any more.
func (s *stranger) hears() (m Message, ok bool) {
	buf := make([]byte, 1<<16)
	n, err := unix.Read(s.fd, buf)
	for err == unix.EINTR {
		n, err = unix.Read(s.fd, buf)
	}
	if err != nil || n < headBytes {
		return m, false
	}
	m = Message{Kind: Kind(buf[0]), Flags: buf[1], A: binary.LittleEndian.Uint32(buf[4:]), B: binary.LittleEndian.Uint64(buf[8:])}
	if !s.isBad && !s.order.takes("parent", &m) {
		panic("the parent sends " + m.Kind.String())
	}
	return m, true
}

// lives plays a child from its start to its end.
func (s *stranger) lives() {
	defer unix.Close(s.fd)
	s.says(Message{Kind: Hello, A: Version})
	s.hears()
	for _, m := range goodTensors() {
		s.says(m)
	}
	s.says(Message{Kind: Bound, Flags: KeepsState, A: 5})
	for {
		m, ok := s.hears()
		if !ok {
			return
		}
		switch m.Kind {
		case Fill:
			s.says(Message{Kind: Filled, A: m.A, B: 4 * uint64(externaltest.Shapes().Elements())})
		case State:
			if m.Flags == sizesState {
				m.B = 11
			}
			s.says(m)
		case Step, Eval:
			if s.rows = m.A; m.Kind == Eval {
				s.says(Message{Kind: Result, Flags: HasCorrect, A: 1, B: math.Float64bits(2)})
			}
		case Have:
			if m.A == 2 {
				s.says(Message{Kind: Forward, Flags: HasCorrect, A: 1, B: math.Float64bits(2)})
			}
		case Go:
			first := uint32(s.rng.IntN(2))
			s.says(Message{Kind: Ready, A: first})
			if s.rng.IntN(2) == 0 {
				s.says(Message{Kind: Done, Flags: AllReady})
				continue
			}
			s.says(Message{Kind: Ready, A: 1 - first})
			s.says(Message{Kind: Done})
		case Bye:
			return
		}
	}
}

// says sends a message, or something else instead or before.
func (s *stranger) says(right Message) {
	b := right.appendTo(nil)
	if s.isBad || s.rng.Float64() >= s.often {
		s.sends(b, right)
		return
	}
	switch s.rng.IntN(7) {
	case 0: // a byte of the head is another
		at := s.rng.IntN(headBytes)
		if right.Kind == State && at >= 10 && at <= 12 { // up to 64 GiB of state, which are allowed
			at = 13
		}
		b[at] = byte(s.rng.IntN(256))
		if s.rng.IntN(2) == 0 {
			b[at] = byte(s.rng.IntN(3))
		}
	case 1: // noise, of any length
		n := []int{0, 1, 15, 16, 17, 100, headBytes + textBytesMax, headBytes + textBytesMax + 1}[s.rng.IntN(8)]
		b = make([]byte, n)
		for i := range b {
			b[i] = byte(s.rng.IntN(256))
		}
	case 2: // another kind
		b[0] = byte(1 + s.rng.IntN(int(kinds)-1))
	case 3: // text is cut, or has more
		b = append(b, "x1"...)
		b = b[:headBytes+s.rng.IntN(len(b)-headBytes+1)]
	case 4: // another message first
		m := Message{Kind: Kind(1 + s.rng.IntN(int(kinds)-1)), A: uint32(s.rng.IntN(4)), Flags: uint8(s.rng.IntN(2))}
		s.sends(m.appendTo(nil), right)
	case 5: // the end
		s.isBad = true
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
		return
	case 6:
		b = (&Message{Kind: Fail, Text: []byte("no reason")}).appendTo(nil)
	}
	s.sends(b, right)
}

func (s *stranger) sends(b []byte, right Message) {
	if !s.isBad {
		s.isIdle = s.order.state == idle
		s.isBad = !s.may(b, right)
	}
	s.sent = append(s.sent, string(b[:min(len(b), 40)]))
	_ = unix.Sendmsg(s.fd, b, nil, nil, unix.MSG_NOSIGNAL)
}

// may says whether a parent should go on after a packet, where a good child sends another one.
func (s *stranger) may(b []byte, right Message) bool {
	if len(b) < 16 || len(b) > 60_016 || b[2] != 0 || b[3] != 0 {
		return false
	}
	kind, flags, a, n := Kind(b[0]), b[1], binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])
	hasFlags := kind == Tensor || kind == Bound || kind == Forward || kind == Result || kind == State || kind == Place || kind == Done
	hasText := kind == Hello || kind == Tensor || kind == Fail
	if flags > 2 || flags == 2 && kind != State || flags == 1 && !hasFlags || len(b) > 16 && !hasText {
		return false
	}
	if kind == Fail || !s.order.takes("child", &Message{Kind: kind, A: a, Flags: flags}) {
		return false
	}
	switch kind {
	case Hello:
		return a == 1
	case Tensor:
		return bytes.Equal(b, right.appendTo(nil))
	case Bound, Filled:
		return kind == right.Kind && a == right.A && (kind == Bound || n == right.B)
	case State:
		return right.Kind == State && flags == right.Flags && a == right.A && (n == right.B || flags == sizesState && n <= stateBytesMax)
	case Forward, Result:
		return flags == 0 && kind == Forward || flags == 1 && a <= s.rows
	}
	return true
}

// meets runs a parent whose child is a stranger, up to its first error.
func meets(t testing.TB, c *Child) error {
	t.Helper()
	err := c.greet()
	if err == nil {
		err = differs(c.shapes, externaltest.Shapes())
	}
	if err == nil {
		err = c.openControl()
	}
	if err != nil {
		return c.ends(err)
	}
	if err := c.Values(make([]float32, c.Shapes().Elements())); err != nil {
		return err
	}
	m, e := c.Model(Training), c.Model(Evaluation)
	m.Bind(apart(), apart())
	e.Bind(apart(), nil)
	for i := range 4 {
		if _, _, err := m.Forward(rowsOf(1, 2, 3), func(int) {}); err != nil {
			return err
		}
		var layers []int
		if err := m.Backward(func(layer int) { layers = append(layers, layer) }); err != nil {
			return err
		}
		if !slices.Equal(layers, []int{1, 0}) {
			t.Errorf("layers %v are ready", layers)
		}
		if i%2 == 1 {
			if _, _, err := e.Eval(rowsOf(1, 2)); err != nil {
				return err
			}
		}
		vector, bytes, err := c.State()
		if err == nil && bytes > 0 && i > 1 {
			err = c.Restore(vector, bytes)
		}
		if err != nil {
			return err
		}
	}
	return c.Close()
}

// messages is how many messages children send in all in TestWhateverAChildSays: 8,000, or as many as FLUENTPS_TEST_CHILD_MESSAGES says.
func messages(t *testing.T) int {
	text := os.Getenv("FLUENTPS_TEST_CHILD_MESSAGES")
	if text == "" {
		return 8_000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1000 {
		t.Fatalf("FLUENTPS_TEST_CHILD_MESSAGES is %q, must be 1000 or more", text)
	}
	return n
}

// A parent goes on exactly as long as its child says what may come, and ends by itself otherwise, whatever bytes the child sends.
func TestWhateverAChildSays(t *testing.T) {
	leavesNothing(t)
	gone()
	enough := messages(t)
	sent, cases, ended := 0, 0, map[bool]int{}
	for seed := uint64(0); sent < enough; seed++ {
		c, fd := pretended(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		s := &stranger{fd: fd, rng: rng, often: []float64{0.005, 0.03, 0.1, 0.5}[seed%4], order: dumb{layers: 2}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.lives()
		}()
		err := meets(t, c)
		_ = c.Close()
		<-done
		unseen := s.isIdle && err == nil // nothing is read between the last answer and BYE
		if (err != nil) != s.isBad && !unseen {
			t.Errorf("seed %d: the child was wrong: %v; the parent says %v after %q", seed, s.isBad, err, s.sent[max(0, len(s.sent)-3):])
		}
		if err != nil && !strings.Contains(err.Error(), "the child ") {
			t.Errorf("seed %d: %v", seed, err)
		}
		ended[err == nil]++
		sent += len(s.sent)
		cases++
	}
	t.Logf("%d messages in %d runs, of which %d ended well", sent, cases, ended[true])
	if ended[true] < cases/10 || ended[false] < cases/10 {
		t.Errorf("%d runs ended well, %d badly: too few", ended[true], ended[false])
	}
}

// HAVE of a layer is sent when wait of the layer has returned, and not before; without wait there is one, of all layers.
func TestHaveIsSentBehindWait(t *testing.T) {
	leavesNothing(t)
	gone()
	c, fd := pretended(t)
	defer unix.Close(fd)
	says := func(list ...Message) {
		for _, m := range list {
			if err := unix.Sendmsg(fd, m.appendTo(nil), nil, nil, unix.MSG_NOSIGNAL); err != nil {
				t.Fatal(err)
			}
		}
	}
	says(Message{Kind: Hello, A: Version})
	says(append(goodTensors(), Message{Kind: Bound, A: 5})...)
	if err := c.greet(); err != nil {
		t.Fatal(err)
	}
	if err := c.openControl(); err != nil {
		t.Fatal(err)
	}
	m := c.Model(Training)
	m.Bind(apart(), apart())
	var came []string
	look := func(what string) {
		came = append(came, what)
		buf := make([]byte, 1<<12)
		for {
			n, _, err := unix.Recvfrom(fd, buf, unix.MSG_DONTWAIT)
			if err != nil || n < headBytes {
				return
			}
			if k := Kind(buf[0]); k == Have || k == Step {
				came = append(came, k.String()+string(rune('0'+buf[4]))+string(rune('0'+buf[8])))
			}
		}
	}
	for range 2 {
		says(Message{Kind: Forward})
		if _, _, err := m.Forward(rowsOf(7, 8, 9), func(layer int) { look("wait" + string(rune('0'+layer))) }); err != nil {
			t.Fatal(err)
		}
		look("forward")
		says(Message{Kind: Ready}, Message{Kind: Ready, A: 1}, Message{Kind: Done})
		if err := m.Backward(nil); err != nil {
			t.Fatal(err)
		}
	}
	says(Message{Kind: Forward})
	if _, _, err := m.Forward(rowsOf(7), nil); err != nil {
		t.Fatal(err)
	}
	look("forward")
	want := []string{"wait0", "STEP30", "wait1", "HAVE10", "forward", "HAVE20", "wait0", "STEP31", "wait1", "HAVE10", "forward", "HAVE20",
		"forward", "STEP12", "HAVE20"}
	if !slices.Equal(came, want) {
		t.Errorf("it went %q, want %q", came, want)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
