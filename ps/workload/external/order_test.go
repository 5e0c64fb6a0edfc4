package external

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// grammar is the order of messages once more, as PROTOCOL.md tells it: by state, what may come, and the state behind it. Messages of the
// parent are in capitals here, those of the child in small letters.
var grammar = map[state]map[string]state{
	greeting: {"hello": binding},
	binding:  {"HELLO": binding, "tensor": binding, "bound": idle},
	idle: {"MAP": idle, "UNMAP": idle, "PLACE": idle, "FILL": filling, "STEP": forwarding, "EVAL": evaluating, "STATE": stating,
		"BYE": ended},
	filling:    {"filled": idle},
	forwarding: {"HAVE": forwarding, "GO": hurrying, "forward": waiting},
	hurrying:   {"forward": backward},
	waiting:    {"GO": backward},
	backward:   {"ready": backward, "done": idle}, // and see dumb
	evaluating: {"result": idle},
	stating:    {"state": idle},
	ended:      {},
}

// dumb is a second order, which keeps the whole story of a step as text.
type dumb struct {
	state  state
	layers int
	told   []string // since GO
}

// takes says whether a message may come, and notes it.
func (d *dumb) takes(who string, m *Message) bool {
	k, layer := m.Kind, m.A
	word := k.String()
	if who == "child" {
		word = strings.ToLower(word)
	}
	switch {
	case word == "fail":
		return true
	case word == "FAIL":
		d.state = ended
		return true
	}
	next, ok := grammar[d.state][word]
	if !ok {
		return false
	}
	this := fmt.Sprintf("ready %d", layer)
	switch word {
	case "GO":
		d.told = nil
	case "ready":
		for _, t := range d.told {
			if t == this {
				return false
			}
		}
		if layer >= uint32(d.layers) {
			return false
		}
		d.told = append(d.told, this)
	case "done":
		if len(d.told) != d.layers && m.Flags == 0 {
			return false
		}
	}
	d.state = next
	return true
}

// Every message in every state is taken or refused as the grammar has it. An error names the message, and what is expected.
func TestEachMessageInEachState(t *testing.T) {
	for s := greeting; s <= ended; s++ {
		if grammar[s] == nil || expects[s] == "" {
			t.Fatalf("state %d is not in the tables", s)
		}
		for k := Hello; k < kinds; k++ {
			for _, ready := range [][]bool{{false, false}, {false, true}, {true, true}} {
				m := Message{Kind: k}
				if k == Done && !ready[1] {
					m.Flags = AllReady
				}
				told := map[bool]string{true: "ready 1", false: "none"}
				d := &dumb{state: s, layers: 2}
				for l, is := range ready {
					if is {
						d.told = append(d.told, fmt.Sprintf("ready %d", l))
					}
				}
				o := order{state: s, ready: append([]bool(nil), ready...), left: 2 - len(d.told)}
				want := d.takes("child", &m)
				err := o.got(&m)
				if (err == nil) != want || want && o.state != d.state {
					t.Errorf("state %d, %s: %v of the child: %v, then state %d; want %v, %d", s, told[ready[1]], k, err, o.state, want, d.state)
				}
				if err != nil && (!strings.HasPrefix(err.Error(), k.String()) || o.state != s) {
					t.Errorf("state %d: %v: error %q, then state %d", s, k, err, o.state)
				}
				d = &dumb{state: s, layers: 2}
				o = order{state: s, ready: make([]bool, 2)}
				want = d.takes("parent", &m)
				if next, ok := o.afterSent(k); ok != want || ok && next != d.state {
					t.Errorf("state %d: %v of the parent: %v, then state %d; want %v, %d", s, k, ok, next, want, d.state)
				}
			}
		}
	}
}

// Sending a message that may not be sent is a bug, and panics.
func TestAMessageOutOfOrderIsABugOfTheParent(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "GO is sent to a child of which HELLO is expected") {
			t.Errorf("it panics with %s", text)
		}
	}()
	(&order{}).sent(Go)
}

// Both orders agree on any sequence of messages, right ones more often than not.
func TestOrderAgreesWithADumbOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := rapid.IntRange(1, 4).Draw(t, "layers")
		o, d := order{ready: make([]bool, layers)}, dumb{layers: layers}
		for range 200 {
			k := Kind(rapid.IntRange(1, int(kinds)-1).Draw(t, "kind"))
			if rapid.IntRange(0, 3).Draw(t, "right") > 0 {
				k = likely(t, d.state)
			}
			m := Message{Kind: k, A: uint32(rapid.IntRange(0, layers).Draw(t, "a"))}
			if k == Done && rapid.Bool().Draw(t, "all") {
				m.Flags = AllReady
			}
			if _, may := o.afterSent(k); may && k != Fail {
				before := o
				if !d.takes("parent", &m) {
					t.Fatalf("%v may be sent in state %d", k, before.state)
				}
				o.sent(k)
			} else if k != Bye {
				before := d
				err := o.got(&m)
				if want := d.takes("child", &m); (err == nil) != want {
					t.Fatalf("%v %d in state %d after %q: %v, want %v", k, m.A, before.state, before.told, err, want)
				}
			}
			if o.state != d.state {
				t.Fatalf("state %d after %v, want %d", o.state, k, d.state)
			}
		}
	})
}

// likely draws a kind that the grammar has in a state.
func likely(t *rapid.T, s state) Kind {
	var may []Kind
	for k := Hello; k < kinds; k++ {
		for word := range grammar[s] {
			if strings.EqualFold(word, k.String()) && k != Bye {
				may = append(may, k)
			}
		}
	}
	if len(may) == 0 {
		return Fail
	}
	return rapid.SampledFrom(may).Draw(t, "likely")
}

// The parent's GO forgets what was ready in the step before.
func TestLayersAreReadyOnceInEachStep(t *testing.T) {
	o := order{state: idle, ready: make([]bool, 2)}
	for range 3 {
		o.sent(Step)
		for _, m := range []Message{{Kind: Forward}, {Kind: Go}, {Kind: Ready, A: 1}, {Kind: Ready}, {Kind: Done}} {
			if m.Kind == Go {
				o.sent(Go)
			} else if err := o.got(&m); err != nil {
				t.Fatal(err)
			}
		}
	}
}
