package checkpoint

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

const (
	// chunkBytes is the size of one write to the disk. For 1 GiB on ext4, beside a training that keeps two cores busy, 4 MiB was as fast
	// as 1 MiB.
	chunkBytes = 4 << 20
	chunkAlign = 4096 // the alignment of memory that disks read by DMA, in bytes
	// directMin is the size of the shortest file that is written in chunks, in bytes: it has several chunks, which overlap.
	directMin = 4 * chunkBytes
)

// output is a file that is written once, from front to back. After an error it writes nothing more, and end returns the error.
type output interface {
	write(b []byte)
	end() error // syncs and closes
}

// newOutput makes the output of a file of about that many bytes. A long file on a local disk bypasses the page cache: the copy of 1 GiB
// into the cache took 0.5 s of a core that training needs, and up to 3 s for the first file in a while, in a virtual machine.
func newOutput(f *os.File, bytes int64) output {
	if bytes >= directMin && setDirect(f) {
		return newDirect(f, chunkBytes)
	}
	return &cached{f: f}
}

// cached writes to the page cache, and asks the system to write each chunk back at once. By itself, the system starts when much of the
// memory is dirty, and then the sync at the end waits for all of it.
type cached struct {
	f     *os.File
	n     int64
	asked int64 // how many of the n bytes the system was asked to write to the disk
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

// direct writes without the page cache. The disk takes one chunk while write fills the next.
type direct struct {
	f    *os.File
	buf  []byte      // the chunk that write fills
	free chan []byte // chunks that have been written; capacity for both
	full chan []byte // chunks that are to be written; end closes it
	done chan error  // the first error, once
}

// newDirect makes the output of a file for which setDirect was called.
func newDirect(f *os.File, chunk int) *direct {
	d := &direct{f: f, buf: aligned(chunk), free: make(chan []byte, 2), full: make(chan []byte), done: make(chan error)}
	d.free <- aligned(chunk)
	go d.drain()
	return d
}

// aligned returns an empty slice whose memory begins at a multiple of chunkAlign.
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

// put writes a chunk. The last chunk is seldom a multiple of the disk's block size, and goes through the page cache. So do the remaining
// chunks if the block size of the disk does not divide ours.
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
