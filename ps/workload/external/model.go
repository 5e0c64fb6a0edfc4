package external

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"fluentps/ps/workload/dataset"
)

// Model computes in a child. It is used as a workload.Model is: by one goroutine at a time. Models of one child take turns.
type Model struct {
	c    *Child
	slot Slot

	params, grads vectors
	looks         Looks
	isPlaced      bool // the child knows where they are
	inPass        bool // between Forward and the end of Backward: the child's pass is held
}

// Looks are what a model may ask of whoever exchanges its parameters and gradients. They wait for nothing that a pass does not need.
type Looks struct {
	AllReadable func() bool // all parameters have arrived: nobody needs to wait for a layer
	AllWritable func() bool // and all gradients may be overwritten, as soon as the loss is known
}

// Look sets them: each message that is not sent saves a wake-up of the child. Without them, a child hears of each layer and of the
// gradients when that is their turn.
func (m *Model) Look(l Looks) { m.looks = l }

// vectors are the parameters or the gradients of a model, by tensor.
type vectors struct {
	bound  [][]float32 // as Bind got them; nil: none
	shared [][]float32 // where the child has them: bound itself, or a copy in a region of the child
	copied []bool
	shadow *region // holds the copies; nil: there are none
}

// Model returns the model of a slot. It is unbound.
func (c *Child) Model(slot Slot) *Model { return &Model{c: c, slot: slot} }

// Room allocates zeroed memory that the child shares. What a model is bound to there is not copied. It goes back with Close.
func (c *Child) Room(bytes int) ([]byte, error) {
	c.lock()
	defer c.unlock()
	if err := c.usable(); err != nil {
		return nil, err
	}
	r, err := c.share(bytes)
	if err != nil {
		return nil, err
	}
	return r.mem[:bytes:bytes], nil
}

// lock takes the child when no pass is under way.
func (c *Child) lock() {
	c.pass.Lock()
	c.mu.Lock()
}

func (c *Child) unlock() {
	c.mu.Unlock()
	c.pass.Unlock()
}

// Lend shares memory of the caller with the child: all of a file, and where it is mapped. Both must stay until Close.
func (c *Child) Lend(f *os.File, mem []byte) error {
	c.lock()
	defer c.unlock()
	if err := c.usable(); err != nil {
		return err
	}
	return c.announce(&region{file: f, mem: mem, isLent: true})
}

// share makes a region, and tells the child.
func (c *Child) share(bytes int) (*region, error) {
	r, err := newRegion(max(1, bytes))
	if err != nil {
		return nil, err
	}
	return r, c.announce(r)
}

// announce numbers a region, and tells the child of it.
func (c *Child) announce(r *region) error {
	r.id = c.nextID
	c.nextID++
	c.regions = append(c.regions, r)
	if err := c.send(&Message{Kind: Map, A: uint32(r.id), B: uint64(len(r.mem))}, r.file); err != nil {
		return c.fail(err)
	}
	return nil
}

// unshare gives a region back.
func (c *Child) unshare(r *region) error {
	c.regions = slices.DeleteFunc(c.regions, func(o *region) bool { return o == r })
	err := c.send(&Message{Kind: Unmap, A: uint32(r.id)}, nil)
	if err != nil {
		err = c.fail(err)
	}
	if freeErr := r.free(); err == nil {
		err = freeErr
	}
	return err
}

// openControl makes region 0.
func (c *Child) openControl() error {
	rowsMax, tensors := max(1, c.o.Welcome.BatchMax, c.o.Welcome.EvalMax), len(c.shapes.Params())
	r, err := c.share(controlBytes(tensors, rowsMax))
	if err == nil {
		c.control = &control{r, tensors, rowsMax}
	}
	return err
}

// Values reads the values that the child's tensors have now, in model order. into gets them, one tensor behind the other.
func (c *Child) Values(into []float32) (err error) {
	n := c.shapes.Elements()
	if len(into) != n {
		panic(fmt.Sprintf("external: Values into %d elements, the model has %d", len(into), n))
	}
	c.lock()
	defer c.unlock()
	if err := c.usable(); err != nil {
		return err
	}
	r, err := c.share(n * floatBytes)
	if err != nil {
		return err
	}
	if err := c.send(&Message{Kind: Fill, A: uint32(r.id)}, nil); err != nil {
		return c.fail(err)
	}
	m, err := c.receive()
	if err == nil && (m.A != uint32(r.id) || m.B != uint64(n*floatBytes)) {
		err = fmt.Errorf("has sent FILLED of region %d with %d bytes, need region %d with %d", m.A, m.B, r.id, n*floatBytes)
	}
	if err != nil {
		return c.fail(err)
	}
	copy(into, r.floats(0, n))
	return c.unshare(r)
}

// Bind sets the memory of parameters and gradients. That of Room is used in place.
func (m *Model) Bind(params, grads [][]float32) {
	all := m.c.shapes.Params()
	if len(params) != len(all) || grads != nil && len(grads) != len(all) {
		panic(fmt.Sprintf("external: Bind got %d parameters and %d gradients, the model has %d", len(params), len(grads), len(all)))
	}
	m.params, m.grads = vectors{bound: params, shadow: m.params.shadow}, vectors{bound: grads, shadow: m.grads.shadow}
	m.isPlaced = false
}

// find finds out where the child has each vector, and makes room for those that lie elsewhere.
func (m *Model) find(v *vectors) error {
	c := m.c
	v.shared, v.copied = slices.Clone(v.bound), make([]bool, len(v.bound))
	elements := 0
	for i, s := range v.bound {
		if at, _ := c.placeOf(s); at == nil {
			v.copied[i] = true
			elements += len(s)
		}
	}
	if v.shadow != nil {
		if err := c.unshare(v.shadow); err != nil {
			return err
		}
		v.shadow = nil
	}
	if elements == 0 {
		return nil
	}
	var err error
	if v.shadow, err = c.share(elements * floatBytes); err != nil {
		return err
	}
	at := 0
	for i, s := range v.bound {
		if v.copied[i] {
			v.shared[i] = v.shadow.floats(at, len(s))
			at += len(s) * floatBytes
		}
	}
	return nil
}

// placeOf finds the region that holds a slice.
func (c *Child) placeOf(s []float32) (r *region, at int) {
	for _, r := range c.regions {
		if at, ok := r.place(s); ok {
			return r, at
		}
	}
	return nil, 0
}

// place tells the child where its parameters and gradients are.
func (m *Model) place() error {
	if m.isPlaced {
		return nil
	}
	c := m.c
	table, flags := c.control.tableAt(m.slot), uint8(0)
	for part, v := range []*vectors{&m.params, &m.grads} {
		if v.bound == nil {
			continue
		}
		if err := m.find(v); err != nil {
			return err
		}
		for i, s := range v.shared {
			r, at := c.placeOf(s)
			c.control.setPlace(table, part*len(v.shared)+i, r.id, at)
		}
		if part == 1 {
			flags = HasGradients
		}
	}
	m.isPlaced = true
	return c.tell(&Message{Kind: Place, Flags: flags, A: uint32(m.slot), B: uint64(table)})
}

// tell sends a message, or ends the child.
func (c *Child) tell(m *Message) error {
	if err := c.send(m, nil); err != nil {
		return c.fail(err)
	}
	return nil
}

// hear receives a message, or ends the child.
func (c *Child) hear() (Message, error) {
	m, err := c.receive()
	if err != nil {
		return m, c.fail(err)
	}
	return m, nil
}

// begin takes the child for a pass over a batch.
func (m *Model) begin(x *dataset.Batch) error {
	c := m.c
	if m.inPass { // the caller gives up the last pass: the child cannot
		if err := m.Backward(nil); err != nil {
			return err
		}
	}
	if len(x.Rows) != x.N || x.N < 1 || x.N > c.control.rowsMax {
		panic(fmt.Sprintf("external: a batch of %d samples with %d row numbers, need 1 to %d", x.N, len(x.Rows), c.control.rowsMax))
	}
	c.lock()
	err := c.usable()
	if err == nil {
		err = m.place()
	}
	if err != nil {
		c.unlock()
		return err
	}
	c.control.setRows(x.Rows)
	return nil
}

// Forward has the child compute the loss of a batch. The child waits for each layer as Forward does. Until Backward has ended, no other
// model of the child computes.
func (m *Model) Forward(x dataset.Batch, wait func(layer int)) (loss float64, correct int, err error) {
	if err := m.begin(&x); err != nil {
		return 0, 0, err
	}
	loss, correct, err = m.forward(&x, wait)
	if err != nil {
		m.c.unlock()
		return 0, 0, err
	}
	m.inPass = true
	m.c.mu.Unlock()
	return loss, correct, nil
}

func (m *Model) forward(x *dataset.Batch, wait func(layer int)) (loss float64, correct int, err error) {
	c := m.c
	if err := c.tell(&Message{Kind: Step, A: uint32(x.N), B: c.steps}); err != nil {
		return 0, 0, err
	}
	c.steps++
	k := 0 // tensors of the layers so far
	for l := range c.shapes.Layers {
		if wait != nil {
			wait(l)
		}
		k += m.params.toChild(k, len(c.shapes.Layers[l].Params))
		isLast := l == len(c.shapes.Layers)-1
		if isLast || wait != nil && !(m.looks.AllReadable != nil && m.looks.AllReadable()) {
			if err := c.tell(&Message{Kind: Have, A: uint32(l + 1)}); err != nil {
				return 0, 0, err
			}
		}
	}
	if wait != nil && m.looks.AllWritable != nil && m.looks.AllWritable() {
		if err := c.tell(&Message{Kind: Go}); err != nil {
			return 0, 0, err
		}
	}
	answer, err := c.hear()
	if err != nil {
		return 0, 0, err
	}
	if loss, correct, err = answer.loss(x.N); err != nil {
		return 0, 0, c.fail(err)
	}
	return loss, correct, nil
}

// toChild copies n vectors from the first on, if the child has them elsewhere. It returns n.
func (v *vectors) toChild(first, n int) int {
	for i := first; i < first+n; i++ {
		if v.copied[i] {
			copy(v.shared[i], v.bound[i])
		}
	}
	return n
}

// fromChild does the reverse.
func (v *vectors) fromChild(first, n int) {
	for i := first; i < first+n; i++ {
		if v.copied[i] {
			copy(v.bound[i], v.shared[i])
		}
	}
}

// Backward has the child compute the gradients. The child reports layers in any order; ready hears of them last layer first.
func (m *Model) Backward(ready func(layer int)) error {
	if !m.inPass {
		panic("external: Backward without a Forward")
	}
	c := m.c
	c.mu.Lock()
	defer c.unlock()
	m.inPass = false
	if c.order.state == waiting {
		if err := c.tell(&Message{Kind: Go}); err != nil {
			return err
		}
	}
	next, k := len(c.shapes.Layers)-1, len(c.shapes.Params())
	for {
		answer, err := c.hear()
		if err != nil {
			return err
		}
		for ; next >= 0 && c.order.ready[next]; next-- {
			n := len(c.shapes.Layers[next].Params)
			k -= n
			if m.grads.bound != nil {
				m.grads.fromChild(k, n)
			}
			if ready != nil {
				ready(next)
			}
		}
		if answer.Kind == Done {
			return nil
		}
	}
}

// Eval has the child compute the loss of test rows.
func (m *Model) Eval(x dataset.Batch) (loss float64, correct int, err error) {
	if err := m.begin(&x); err != nil {
		return 0, 0, err
	}
	defer m.c.unlock()
	m.params.toChild(0, len(m.params.bound))
	if err := m.c.tell(&Message{Kind: Eval, A: uint32(x.N)}); err != nil {
		return 0, 0, err
	}
	answer, err := m.c.hear()
	if err != nil {
		return 0, 0, err
	}
	if m.c.o.Welcome.Accuracy && answer.Flags != HasCorrect {
		return 0, 0, m.c.fail(errors.New("has sent RESULT without the number of samples that the model has right: let the program count them, " +
			"or set data.accuracy: false"))
	}
	if loss, correct, err = answer.loss(x.N); err != nil {
		return 0, 0, m.c.fail(err)
	}
	return loss, correct, nil
}
