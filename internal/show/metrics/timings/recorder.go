// Package timings holds how long each iteration of each worker computed and waited: recorded during a run, kept in iterations.csv,
// read back for pages, for the simulator, and for workers that replay the slowness of a recorded run.
package timings

import (
	"strconv"
	"time"
)

// IterationBytes is the size of one Iteration in memory.
const IterationBytes = 64

// Iteration has the times of one iteration of one worker, and of the wait after it.
type Iteration struct {
	Iter     int64         // index of the iteration
	Start    time.Duration // since training began, on rank 0's clock; forward's waits for layers delay Start and count to the iteration before
	Compute  time.Duration // forward and backward, with the injected slowness
	Injected time.Duration // part of Compute: the measured sleep of injected faults
	Push     time.Duration // handing gradients to the transport, between the layers of backward
	Blocked  time.Duration // after backward, and between layers of the next forward: until the last reply began to arrive
	Pull     time.Duration // after Blocked: until the parameters had been read
	Samples  int           // of the iteration; 0: unknown, in rows of an earlier version
}

// Own is how long the worker computed, without the injected slowness.
func (i *Iteration) Own() time.Duration { return max(0, i.Compute+i.Push-i.Injected) }

// End is when the last gradient was handed to the transport, since training began.
func (i *Iteration) End() time.Duration { return i.Start + i.Compute + i.Push }

// Leaves is an instant before the last gradient began to leave. Parts of Push may lie between the layers of backward,
// so the last one left up to Push later. What the push lets others do starts after this instant; End says less, for a
// process may lose its processor before it.
func (i *Iteration) Leaves() time.Duration { return i.Start + i.Compute }

// Recorder keeps the first iterations of one worker. It belongs to one goroutine at a time.
type Recorder struct {
	Max     int   // the most iterations that are kept
	LeftOut int64 // iterations that were not kept, because Max was reached

	blocks [][]Iteration // all but the last are full; a full block is never copied
	n      int
}

// recorderBlock is the number of iterations in a block of memory, and in one chunk of text.
const recorderBlock = 4096

// Add records an iteration. Waited adds its waits later.
func (r *Recorder) Add(it Iteration) {
	if r.n >= r.Max {
		r.LeftOut++
		return
	}
	if r.n%recorderBlock == 0 {
		r.blocks = append(r.blocks, make([]Iteration, 0, min(recorderBlock, r.Max-r.n)))
	}
	last := &r.blocks[len(r.blocks)-1]
	*last = append(*last, it)
	r.n++
}

// Waited sets the waits of the iteration that was added last.
func (r *Recorder) Waited(blocked, pull time.Duration) {
	if r.n == 0 || r.LeftOut > 0 {
		return
	}
	last := r.blocks[len(r.blocks)-1]
	last[len(last)-1].Blocked, last[len(last)-1].Pull = blocked, pull
}

// Correct puts the times of all iterations on another clock. None starts before training began.
func (r *Recorder) Correct(clock func(time.Duration) time.Duration) {
	for _, block := range r.blocks {
		for i := range block {
			it := &block[i]
			at := it.Start
			it.Start = max(0, clock(at))
			for _, took := range []*time.Duration{&it.Compute, &it.Push, &it.Blocked, &it.Pull} {
				from := clock(at)
				at += *took
				*took = clock(at) - from
			}
			it.Injected = min(it.Injected, it.Compute)
		}
	}
}

// Len is the number of iterations kept.
func (r *Recorder) Len() int { return r.n }

// Chunks is the number of chunks of text.
func (r *Recorder) Chunks() int { return len(r.blocks) }

// ChunksOf is the number of chunks of n iterations.
func ChunksOf(n int) int { return (n + recorderBlock - 1) / recorderBlock }

// Chunk is the k-th chunk of the rows of a worker as text, without the header.
func (r *Recorder) Chunk(worker, k int) []byte {
	var b []byte
	for i := range r.blocks[k] {
		it := &r.blocks[k][i]
		b = strconv.AppendInt(b, int64(worker), 10)
		b = append(b, ',')
		b = strconv.AppendInt(b, it.Iter, 10)
		for _, d := range it.times() {
			b = append(b, ',')
			b = strconv.AppendFloat(b, d.Seconds(), 'f', 9, 64)
		}
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(it.Samples), 10)
		b = append(b, '\n')
	}
	return b
}

func (i *Iteration) times() []*time.Duration {
	return []*time.Duration{&i.Start, &i.Compute, &i.Injected, &i.Push, &i.Blocked, &i.Pull}
}
