package checkpoint

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

const (
	// chunkBytes are copied, or are on their way to the disk, at once. Of 1 GiB on ext4, beside a training that keeps two cores
	// busy, 4 MiB were as fast as 1 MiB.
	chunkBytes = 4 << 20
	chunkAlign = 4096 // what disks want of memory that they read themselves
	// directMin is the shortest file that is written in chunks: one that has several, so that they overlap.
	directMin = 4 * chunkBytes
)

// output is a file that is written once, from front to back. After an error nothing more is written, and end says which it
// was.
type output interface {
	write(b []byte)
	end() error // syncs and closes
}

// newOutput writes a file of about so many bytes. On a local disk a long one goes past the page cache: the copy of 1 GiB into
// it took 0.5 s of a core that training wants, and up to 3 s where it was the first in a while, in a virtual machine.
func newOutput(f *os.File, bytes int64) output {
	if bytes >= directMin && setDirect(f) {
		return newDirect(f, chunkBytes)
	}
	return &cached{f: f}
}

// cached writes to the page cache. The system is asked early to write on, because by itself it begins when much of the memory
// is to be written, and then the sync at the end waits for all of it.
type cached struct {
	f     *os.File
	n     int64
	asked int64 // of these, how many the system was asked to write to the disk
	err   error
}

func (c *cached) write(b []byte) {
	if c.err != nil {
		return
	}
	_, c.err = c.f.Write(b)
	if c.n += int64(len(b)); c.err == nil && c.n-c.asked >= chunkBytes {
		writeBehind(c.f, c.asked, c.n-c.asked)
		c.asked = c.n
	}
}

func (c *cached) end() error { return closed(c.f, c.err) }

func closed(f *os.File, err error) error {
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// direct writes without the page cache: the disk reads one chunk while the next is filled.
type direct struct {
	f    *os.File
	buf  []byte      // is filled
	free chan []byte // have been written; it has room for both
	full chan []byte // is to be written; closed at the end
	done chan error
}

// newDirect writes to a file that is set to be written directly.
func newDirect(f *os.File, chunk int) *direct {
	d := &direct{f: f, buf: aligned(chunk), free: make(chan []byte, 2), full: make(chan []byte), done: make(chan error)}
	d.free <- aligned(chunk)
	go d.drain()
	return d
}

// aligned is an empty slice whose memory begins where disks want it.
func aligned(capacity int) []byte {
	b := make([]byte, capacity+chunkAlign)
	past := int(uintptr(unsafe.Pointer(&b[0])) % chunkAlign)
	from := (chunkAlign - past) % chunkAlign
	return b[from : from : from+capacity]
}

func (d *direct) write(b []byte) {
	for len(b) > 0 {
		n := copy(d.buf[len(d.buf):cap(d.buf)], b)
		d.buf, b = d.buf[:len(d.buf)+n], b[n:]
		if len(d.buf) == cap(d.buf) {
			d.full <- d.buf
			d.buf = (<-d.free)[:0]
		}
	}
}

func (d *direct) end() error {
	d.full <- d.buf
	close(d.full)
	return closed(d.f, <-d.done)
}

func (d *direct) drain() {
	var err error
	for b := range d.full {
		if err == nil {
			err = d.put(b)
		}
		d.free <- b
	}
	d.done <- err
}

// put writes a chunk. The last is seldom as long as a disk wants it, and goes through the page cache; so does all that is left
// where a disk wants longer ones than ours.
func (d *direct) put(b []byte) error {
	if len(b) < cap(b) {
		unsetDirect(d.f)
	}
	n, err := d.f.Write(b)
	if errors.Is(err, syscall.EINVAL) {
		unsetDirect(d.f)
		_, err = d.f.Write(b[n:])
	}
	return err
}
