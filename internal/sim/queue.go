package sim

// eventKind says what happens at an event's time.
type eventKind uint8

const (
	evBegin    eventKind = iota // node: a worker starts
	evComputed                  // node: a worker's iteration is over; arg is its epoch
	evControl                   // node: the message in slot arg arrives
	evLanded                    // node: the last byte of the transfer in slot arg arrives
	evSent                      // node: the last byte of the transfer in slot arg has left
	evEffect                    // node: a server has done the work before its next arg sends
	evFree                      // node: a server has finished its work
	evLost                      // node: a worker dies
	evDeath                     // node: a server learns of a death, with the message in slot arg
	evJoin                      // node: a worker rejoins
	evPeerLost                  // node: a worker learns of the death of worker arg
	evPause                     // node: a worker pauses; arg is the index of the pause
	evNormed                    // node: a server knows the squares of the pending sums of shard arg
	evAlarm                     // node: a server's alarm for shard arg
	evAhead                     // node: a server has staged the push of the transfer in slot arg, which arrived earlier
	evMeasured                  // node: a worker's report has reached rank 0; arg is 1: it computes nothing any more
	evDealt                     // node: a worker gets its next batches
	evStop                      // the budget of virtual time is used up
)

// event will happen at a virtual time. Events of one time happen in the order in which they were made.
type event struct {
	at   int64 // virtual nanoseconds
	seq  uint64
	kind eventKind
	node int32
	arg  int32
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

// queue holds the future events. Most of them have one of two delays, zero or the latency of the network. These are made in the
// order of their times, so a ring for each delay adds and removes them in constant time. All others are in a binary heap.
type queue struct {
	seq   uint64
	heap  []event
	lanes [2]ring
	delay [2]int64 // of each lane
}

// after makes an event at d nanoseconds after now.
func (q *queue) after(now, d int64, kind eventKind, node, arg int32) {
	e := event{at: now + d, seq: q.seq, kind: kind, node: node, arg: arg}
	q.seq++
	for i := range q.lanes {
		if d == q.delay[i] {
			q.lanes[i].push(e)
			return
		}
	}
	q.heap = append(q.heap, e)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !q.heap[i].before(&q.heap[up]) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

// first returns the next event, nil if there is none. from is the index of its lane, or -1 for the heap.
func (q *queue) first() (e *event, from int) {
	from = -1
	if len(q.heap) > 0 {
		e = &q.heap[0]
	}
	for i := range q.lanes {
		if r := &q.lanes[i]; r.n > 0 {
			if head := &r.buf[r.head]; e == nil || head.before(e) {
				e, from = head, i
			}
		}
	}
	return e, from
}

// pop removes and returns the event that first has found.
func (q *queue) pop(from int) event {
	if from >= 0 {
		return q.lanes[from].pop()
	}
	top := q.heap[0]
	last := len(q.heap) - 1
	e := q.heap[last]
	q.heap = q.heap[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		kid := 2*i + 1
		if kid >= last {
			break
		}
		if kid+1 < last && q.heap[kid+1].before(&q.heap[kid]) {
			kid++
		}
		if !q.heap[kid].before(&e) {
			break
		}
		q.heap[i] = q.heap[kid]
		i = kid
	}
	q.heap[i] = e
	return top
}

// ring is a queue of events in order of time. Its length is a power of two.
type ring struct {
	buf     []event
	head, n int
}

func (r *ring) push(e event) {
	if r.n == len(r.buf) {
		grown := make([]event, max(64, 2*len(r.buf)))
		for i := range r.n {
			grown[i] = r.buf[(r.head+i)&(len(r.buf)-1)]
		}
		r.buf, r.head = grown, 0
	}
	r.buf[(r.head+r.n)&(len(r.buf)-1)] = e
	r.n++
}

func (r *ring) pop() event {
	e := r.buf[r.head]
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return e
}

// slab stores values of which many are made but few exist at once. It reuses indices.
type slab[T any] struct {
	all  []T
	free []int32
}

func (s *slab[T]) put(v T) int32 {
	if len(s.free) == len(s.all) {
		// No index is in use. Start over, so that consecutive values are adjacent: with a million transfers in flight,
		// a pass over them in that order reads memory in order.
		s.free, s.all = s.free[:0], s.all[:0]
	}
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		s.all[i] = v
		return i
	}
	s.all = append(s.all, v)
	return int32(len(s.all) - 1)
}

// take returns a value and frees its index.
func (s *slab[T]) take(i int32) T {
	s.free = append(s.free, i)
	return s.all[i]
}
