package externaltest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kinds of messages, by number, as PROTOCOL.md has them.
const (
	msgHello = 1 + iota
	msgTensor
	msgBound
	msgMap
	msgUnmap
	msgFill
	msgFilled
	msgPlace
	msgStep
	msgHave
	msgForward
	msgGo
	msgReady
	msgDone
	msgEval
	msgResult
	msgState
	msgFail
	msgBye
)

const rowsAt = 4096 // byte of region 0

// message is a packet.
type message struct {
	kind, flags byte
	a           uint32
	b           uint64
	text        string
}

// tensor is what a TENSOR says.
type tensor struct {
	layer, name, shape string
	stat               byte
	index              uint32
	elements           uint64
}

// child is the process.
type child struct {
	fd      int
	mode    string
	only    int // the worker that goes wrong; -1: all
	fault   fault
	welcome struct{ Worker, Workers int }

	tensors []tensor
	regions map[uint32][]byte
	params  [2][][]float32 // by slot
	grads   [][]float32
	have    uint32 // layers that may be read
	drawn   int    // random numbers so far; only some modes draw
	asked   message
}

// say sends a message. A child without its parent ends.
func (c *child) say(m message) {
	b := binary.LittleEndian.AppendUint32([]byte{m.kind, m.flags, 0, 0}, m.a)
	c.raw(append(binary.LittleEndian.AppendUint64(b, m.b), m.text...))
}

// raw sends any packet.
func (c *child) raw(b []byte) {
	if err := unix.Sendmsg(c.fd, b, nil, nil, unix.MSG_NOSIGNAL); err != nil {
		fmt.Fprintln(os.Stderr, "externaltest: send:", err)
		panic(ending{5})
	}
}

// hear waits for a message, and maps the region of a MAP.
func (c *child) hear() (m message) {
	buf, rights := make([]byte, 1<<16), make([]byte, unix.CmsgSpace(4))
	n, nRights, _, _, err := unix.Recvmsg(c.fd, buf, rights, unix.MSG_CMSG_CLOEXEC)
	for err == unix.EINTR {
		n, nRights, _, _, err = unix.Recvmsg(c.fd, buf, rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil || n < 16 {
		fmt.Fprintln(os.Stderr, "externaltest: the parent has gone:", n, err)
		panic(ending{5})
	}
	m = message{kind: buf[0], flags: buf[1], a: binary.LittleEndian.Uint32(buf[4:]), b: binary.LittleEndian.Uint64(buf[8:]),
		text: string(buf[16:n])}
	if m.kind == msgMap {
		c.mapRegion(m, rights[:nRights])
	}
	return m
}

func (c *child) mapRegion(m message, rights []byte) {
	parts, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(parts) != 1 {
		c.fail(fmt.Sprintf("MAP with %d descriptors: %v", len(parts), err))
	}
	fds, err := unix.ParseUnixRights(&parts[0])
	if err != nil || len(fds) != 1 || c.regions[m.a] != nil {
		c.fail(fmt.Sprintf("MAP %d, descriptors %v: %v", m.a, fds, err))
	}
	if c.regions[m.a], err = unix.Mmap(fds[0], 0, int(m.b), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		c.fail("mmap: " + err.Error())
	}
	_ = unix.Close(fds[0])
}

func (c *child) fail(why string) {
	c.say(message{kind: msgFail, text: why})
	panic(ending{1})
}

// run is the whole life of a child.
func (c *child) run() {
	c.regions = map[uint32][]byte{}
	c.welcome.Worker = -1
	if c.at(atStart) {
		return
	}
	if !c.at(atHello) {
		c.say(message{kind: msgHello, a: 1, b: uint64(os.Getpid())})
	}
	m := c.hear()
	if err := json.Unmarshal([]byte(m.text), &c.welcome); m.kind != msgHello || err != nil {
		c.fail(fmt.Sprintf("message %d where HELLO is expected: %v", m.kind, err))
	}
	c.bind()
	for c.answer(c.hear()) {
	}
}

// bind tells the parent of the tensors.
func (c *child) bind() {
	for i, p := range Shapes().Params() {
		t := tensor{layer: Shapes().Layers[p.Layer].Name, name: p.Name, index: uint32(i), elements: uint64(p.N())}
		for _, n := range p.Shape {
			t.shape += "x" + strconv.Itoa(n)
		}
		t.shape = strings.TrimPrefix(t.shape, "x")
		if p.Stat {
			t.stat = 1
		}
		c.tensors = append(c.tensors, t)
	}
	c.at(atBind)
	for _, t := range c.tensors {
		c.say(message{msgTensor, t.stat, t.index, t.elements, t.layer + "\n" + t.name + "\n" + t.shape})
	}
	if !c.at(atBound) {
		c.say(message{kind: msgBound, flags: c.keeps(), a: uint32(len(c.tensors))})
	}
}

// answer does what the parent asks for, and says whether the child goes on.
func (c *child) answer(m message) bool {
	c.asked = m
	switch m.kind {
	case msgMap:
	case msgUnmap:
		_ = unix.Munmap(c.regions[m.a])
		delete(c.regions, m.a)
	case msgFill:
		c.fill()
	case msgPlace:
		c.place()
	case msgStep:
		c.step()
	case msgEval:
		if !c.at(atEval) {
			loss, correct, _ := Compute(c.params[1], c.rows(), true, nil)
			c.say(message{msgResult, 1, uint32(correct), math.Float64bits(loss), ""})
		}
	case msgState:
		c.state()
	case msgBye:
		c.at(atBye)
		return false
	default:
		c.fail(fmt.Sprintf("message %d between steps", m.kind))
	}
	return true
}

func (c *child) fill() {
	seed := 0
	if c.mode == "unlike" {
		seed = c.welcome.Worker
	}
	at := 0
	for _, values := range Values(seed) {
		at += copy(floats(c.regions[c.asked.a], at*4, len(values)), values)
	}
	if !c.at(atFill) {
		c.say(message{msgFilled, 0, c.asked.a, uint64(at * 4), ""})
	}
}

// place reads the table of a PLACE.
func (c *child) place() {
	entries := len(c.tensors) * (1 + int(c.asked.flags))
	found := make([][]float32, entries)
	for i := range found {
		e := c.regions[0][int(c.asked.b)+16*i:]
		region := c.regions[binary.LittleEndian.Uint32(e)]
		if region == nil {
			c.fail(fmt.Sprintf("PLACE names region %d, which is not mapped", binary.LittleEndian.Uint32(e)))
		}
		found[i] = floats(region, int(binary.LittleEndian.Uint64(e[8:])), int(c.tensors[i%len(c.tensors)].elements))
	}
	c.params[c.asked.a] = found[:len(c.tensors)]
	if c.asked.flags == 1 {
		c.grads = found[len(c.tensors):]
	}
}

// rows are those of the STEP or EVAL.
func (c *child) rows() []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(&c.regions[0][rowsAt])), c.asked.a)
}

func floats(region []byte, at, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&region[at : at+4*n][0])), n)
}

func (c *child) step() {
	if c.at(atStep) {
		return
	}
	c.have = 0
	loss, correct, grads := Compute(c.params[0], c.rows(), false, c.need)
	c.draw(grads)
	if !c.at(atForward) {
		c.say(message{msgForward, 1, uint32(correct), math.Float64bits(loss), ""})
	}
	if m := c.hear(); m.kind != msgGo {
		c.fail(fmt.Sprintf("message %d where GO is expected", m.kind))
	}
	if c.at(atGo) {
		return
	}
	for i := range layers {
		l := layers - 1 - i
		if c.mode == "firstsent" {
			l = i
		}
		for t := range grads {
			if layerOf[t] == l {
				copy(c.grads[t], grads[t])
			}
		}
		c.say(message{kind: msgReady, a: uint32(l)})
	}
	if !c.at(atDone) {
		c.say(message{kind: msgDone})
	}
}

// need waits until a layer may be read.
func (c *child) need(layer int) {
	for c.have <= uint32(layer) {
		m := c.hear()
		if m.kind != msgHave || m.a <= c.have || m.a > layers {
			c.fail(fmt.Sprintf("message %d of %d layers where HAVE is expected, after %d", m.kind, m.a, c.have))
		}
		c.have = m.a
	}
}
