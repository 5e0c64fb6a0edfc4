package external

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Version is that of the protocol.
const Version = 1

// Kind of a message.
type Kind uint8

// The kinds, as PROTOCOL.md has them.
const (
	Hello Kind = 1 + iota
	Tensor
	Bound
	Map
	Unmap
	Fill
	Filled
	Place
	Step
	Have
	Forward
	Go
	Ready
	Done
	Eval
	Result
	State
	Fail
	Bye
	kinds
)

var kindNames = [kinds]string{
	Hello: "HELLO", Tensor: "TENSOR", Bound: "BOUND", Map: "MAP", Unmap: "UNMAP", Fill: "FILL", Filled: "FILLED", Place: "PLACE",
	Step: "STEP", Have: "HAVE", Forward: "FORWARD", Go: "GO", Ready: "READY", Done: "DONE", Eval: "EVAL", Result: "RESULT",
	State: "STATE", Fail: "FAIL", Bye: "BYE",
}

func (k Kind) String() string {
	if k == 0 || k >= kinds {
		return fmt.Sprintf("message of kind %d", uint8(k))
	}
	return kindNames[k]
}

// Flags of messages.
const (
	IsStatistic  = 1 // TENSOR
	HasGradients = 1 // PLACE
	HasCorrect   = 1 // FORWARD, RESULT
	KeepsState   = 1 // BOUND
	AllReady     = 1 // DONE
)

// What STATE asks for, and what its answer says, as flags.
const (
	sizesState = iota
	savesState
	restoresState
)

// flagsMax is by kind.
var flagsMax = [kinds]uint8{Tensor: IsStatistic, Bound: KeepsState, Place: HasGradients, Forward: HasCorrect, Result: HasCorrect,
	Done: AllReady, State: restoresState}

const (
	headBytes = 16
	// textBytesMax is the most that stands behind the head of a message.
	textBytesMax = 60_000
)

// Message is one packet. What A, B and Text mean depends on the kind.
type Message struct {
	Kind  Kind
	Flags uint8
	A     uint32
	B     uint64
	Text  []byte // belongs to the reader until it reads again
}

// appendTo appends the bytes of a message.
func (m *Message) appendTo(b []byte) []byte {
	b = append(b, byte(m.Kind), m.Flags, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, m.A)
	b = binary.LittleEndian.AppendUint64(b, m.B)
	return append(b, m.Text...)
}

// decode reads a packet.
func decode(b []byte) (m Message, err error) {
	switch {
	case len(b) < headBytes:
		return m, fmt.Errorf("a message of %d bytes, need at least %d", len(b), headBytes)
	case len(b) > headBytes+textBytesMax:
		return m, fmt.Errorf("a message of more than %d bytes, the limit", headBytes+textBytesMax)
	case b[0] == 0 || Kind(b[0]) >= kinds:
		return m, fmt.Errorf("a %v, which is not known; the last is %d", Kind(b[0]), kinds-1)
	case b[2] != 0 || b[3] != 0:
		return m, fmt.Errorf("%v with bytes 2 and 3 %d and %d, need 0", Kind(b[0]), b[2], b[3])
	}
	m = Message{Kind: Kind(b[0]), Flags: b[1], A: binary.LittleEndian.Uint32(b[4:]), B: binary.LittleEndian.Uint64(b[8:])}
	m.Text = b[headBytes:]
	if most := flagsMax[m.Kind]; m.Flags > most {
		return m, fmt.Errorf("%v with flags %d, the largest is %d", m.Kind, m.Flags, most)
	}
	if len(m.Text) > 0 && m.Kind != Hello && m.Kind != Tensor && m.Kind != Fail {
		return m, fmt.Errorf("%v with %d bytes behind it, which have no meaning", m.Kind, len(m.Text))
	}
	return m, nil
}

// loss reads a FORWARD or a RESULT over so many rows. Correct is 0 where the child counts no hits.
func (m *Message) loss(rows int) (loss float64, correct int, err error) {
	if m.Flags == HasCorrect {
		if m.A > uint32(rows) {
			return 0, 0, fmt.Errorf("%v says that the model had %d samples right, of %d", m.Kind, m.A, rows)
		}
		correct = int(m.A)
	}
	return math.Float64frombits(m.B), correct, nil
}
