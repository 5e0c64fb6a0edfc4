package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
)

// product is standard output of the verbs that print a result: a job script, a plan, a table. A part of the result must not be
// lost in silence, so product remembers the first failed write. The output of a run is best effort, because the run folder has
// it too: it goes to an outlet instead.
type product struct {
	file *os.File
	any  bool  // something was written
	err  error // of the first write that failed
}

func (p *product) Write(text []byte) (int, error) {
	p.any = true
	n, err := p.file.Write(text)
	p.err = cmp.Or(p.err, err)
	return n, err
}

// delivered closes the file and returns nil if every write arrived. Some file systems report only on close that the disk is full.
func (p *product) delivered() error {
	if !p.any {
		return nil
	}
	if err := errors.Join(p.err, p.file.Close()); err != nil {
		return fmt.Errorf("standard output is incomplete: %w", err)
	}
	return nil
}

// fileOf returns the file behind standard output, for child processes that write to it themselves, and for runs.
func fileOf(w io.Writer) io.Writer {
	if p, ok := w.(*product); ok {
		return p.file
	}
	return w
}
