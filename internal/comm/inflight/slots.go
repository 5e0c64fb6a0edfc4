// Package inflight holds the bookkeeping that transports share: operations in numbered slots, and queues of numbers by
// key. Neither allocates in steady state.
package inflight

import "fluentps/internal/comm"

// Slots holds values in numbered slots and reuses the slots. The zero value is empty.
type Slots[T any] struct {
	items []item[T]
	idle  []uint32
}

type item[T any] struct {
	uses  uint32 // how often this slot was taken: distinguishes a stale Op from a live one
	live  bool
	value T
}

// Put stores a value into a slot.
func (s *Slots[T]) Put(value T) (slot uint32) {
	if len(s.idle) == 0 {
		s.items = append(s.items, item[T]{})
		s.idle = append(s.idle, uint32(len(s.items)-1))
	}
	last := len(s.idle) - 1
	slot = s.idle[last]
	s.idle = s.idle[:last]
	i := &s.items[slot]
	i.uses++
	i.live, i.value = true, value
	return slot
}

// At returns the value of a live slot; the pointer is valid until the next Put.
func (s *Slots[T]) At(slot uint32) *T { return &s.items[slot].value }

// Take empties a slot and returns what it held.
func (s *Slots[T]) Take(slot uint32) T {
	i := &s.items[slot]
	value := i.value
	var zero T
	i.live, i.value = false, zero
	s.idle = append(s.idle, slot)
	return value
}

// Op names the value that a live slot holds; the slot's next value has another name.
func (s *Slots[T]) Op(slot uint32) comm.Op {
	return comm.Op(s.items[slot].uses)<<32 | comm.Op(slot)
}

// Find returns the slot of an operation, and whether it is still live.
func (s *Slots[T]) Find(op comm.Op) (slot uint32, ok bool) {
	slot = uint32(op)
	return slot, int(slot) < len(s.items) && s.items[slot].live && s.Op(slot) == op
}

// Len is the number of live slots.
func (s *Slots[T]) Len() int { return len(s.items) - len(s.idle) }

// Each calls f with all live slots.
func (s *Slots[T]) Each(f func(slot uint32, value *T)) {
	for i := range s.items {
		if s.items[i].live {
			f(uint32(i), &s.items[i].value)
		}
	}
}
