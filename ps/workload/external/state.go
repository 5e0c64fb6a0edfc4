package external

import (
	"fmt"
)

// stateBytesMax is the most that a checkpoint holds of a child.
const stateBytesMax = 1 << 36

// State is what a checkpoint holds of the child beside parameters: random states, an optimizer of its own. The child must be between two
// passes. The bytes are those of memory for numbers: of vector, the last number may be filled up with zeros. Without state there are none.
func (c *Child) State() (vector []float32, bytes int64, err error) {
	c.lock()
	defer c.unlock()
	if err := c.usable(); err != nil || !c.keepsState {
		return nil, 0, err
	}
	m, err := c.askState(sizesState, 0, 0)
	if err != nil || m.B == 0 {
		return nil, 0, err
	}
	if m.B > stateBytesMax {
		return nil, 0, c.fail(fmt.Errorf("has %d bytes of state, the limit is %d: register less with ps.state", m.B, int64(stateBytesMax)))
	}
	bytes = int64(m.B)
	vector = make([]float32, (bytes+floatBytes-1)/floatBytes)
	r, err := c.share(len(vector) * floatBytes)
	if err != nil {
		return nil, 0, err
	}
	if _, err := c.askState(savesState, r.id, m.B); err != nil {
		return nil, 0, err
	}
	copy(vector, r.floats(0, len(vector)))
	return vector, bytes, c.unshare(r)
}

// Restore gives the child what State has returned.
func (c *Child) Restore(vector []float32, bytes int64) error {
	c.lock()
	defer c.unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if !c.keepsState {
		return c.fail(fmt.Errorf("keeps no state, but the checkpoint has %d bytes of it: resume with the program of the checkpoint", bytes))
	}
	r, err := c.share(len(vector) * floatBytes)
	if err != nil {
		return err
	}
	copy(r.floats(0, len(vector)), vector)
	if _, err := c.askState(restoresState, r.id, uint64(bytes)); err != nil {
		return err
	}
	return c.unshare(r)
}

// askState sends a STATE, and hears its answer: of the same region, and of as many bytes unless it asks for their number.
func (c *Child) askState(what uint8, region int, bytes uint64) (m Message, err error) {
	if err := c.tell(&Message{Kind: State, Flags: what, A: uint32(region), B: bytes}); err != nil {
		return m, err
	}
	if m, err = c.hear(); err != nil {
		return m, err
	}
	if m.Flags != what || m.A != uint32(region) || what != sizesState && m.B != bytes {
		return m, c.fail(fmt.Errorf("has answered STATE %d of region %d and %d bytes with STATE %d of region %d and %d bytes: need the same",
			what, region, bytes, m.Flags, m.A, m.B))
	}
	return m, nil
}

// StateFits says whether a vector may hold so many bytes of state.
func StateFits(vector []float32, bytes int64) bool {
	return bytes > 0 && bytes <= stateBytesMax && int64(len(vector)) == (bytes+floatBytes-1)/floatBytes
}
