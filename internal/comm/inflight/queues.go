package inflight

import "math/bits"

// Queues keeps numbers in queues by key. A number is in at most one queue. Numbers should be small: the memory grows
// with the largest. The zero value is empty.
type Queues struct {
	chains []chain // by hash of the key; their number is a power of two
	links  []link  // by number
	count  int
}

// chain holds the queues of all keys with one hash, each in order.
type chain struct{ first, last uint32 }

type link struct {
	key        uint64
	prev, next uint32
}

const (
	// None is no number.
	None      = ^uint32(0)
	chainsMin = 16
)

func (q *Queues) chain(key uint64) *chain {
	const golden = 0x9e3779b97f4a7c15 // spreads keys that differ in few bits over the high ones
	return &q.chains[key*golden>>(64-bits.TrailingZeros(uint(len(q.chains))))]
}

// Push appends a number to a queue.
func (q *Queues) Push(key uint64, n uint32) {
	if q.count >= len(q.chains) {
		q.grow()
	}
	for int(n) >= len(q.links) {
		q.links = append(q.links, link{})
	}
	q.count++
	q.push(key, n)
}

func (q *Queues) push(key uint64, n uint32) {
	c := q.chain(key)
	q.links[n] = link{key: key, prev: c.last, next: None}
	if c.last == None {
		c.first = n
	} else {
		q.links[c.last].next = n
	}
	c.last = n
}

// grow doubles the chains and keeps the order of each queue.
func (q *Queues) grow() {
	old := q.chains
	q.chains = make([]chain, max(chainsMin, 2*len(old)))
	for i := range q.chains {
		q.chains[i] = chain{None, None}
	}
	for _, c := range old {
		for n := c.first; n != None; {
			next := q.links[n].next
			q.push(q.links[n].key, n)
			n = next
		}
	}
}

// First returns the oldest number of a queue, or None.
func (q *Queues) First(key uint64) uint32 {
	if len(q.chains) == 0 {
		return None
	}
	return q.seek(key, q.chain(key).first)
}

// Last returns the newest number of a queue, or None.
func (q *Queues) Last(key uint64) uint32 {
	if len(q.chains) == 0 {
		return None
	}
	return q.seekBack(key, q.chain(key).last)
}

// Prev returns the number before n in its queue, or None.
func (q *Queues) Prev(n uint32) uint32 { return q.seekBack(q.links[n].key, q.links[n].prev) }

func (q *Queues) seekBack(key uint64, n uint32) uint32 {
	for n != None && q.links[n].key != key {
		n = q.links[n].prev
	}
	return n
}

// Next returns the number after n in its queue, or None.
func (q *Queues) Next(n uint32) uint32 { return q.seek(q.links[n].key, q.links[n].next) }

func (q *Queues) seek(key uint64, n uint32) uint32 {
	for n != None && q.links[n].key != key {
		n = q.links[n].next
	}
	return n
}

// Remove takes a number out of its queue.
func (q *Queues) Remove(n uint32) {
	l := q.links[n]
	c := q.chain(l.key)
	if l.prev == None {
		c.first = l.next
	} else {
		q.links[l.prev].next = l.next
	}
	if l.next == None {
		c.last = l.prev
	} else {
		q.links[l.next].prev = l.prev
	}
	q.count--
}

// Len is the number of numbers in all queues.
func (q *Queues) Len() int { return q.count }
