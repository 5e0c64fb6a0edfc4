package verbs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
)

// product is standard output of the verbs whose product it is: a job script, a plan, a table. Of it nothing may be missing without
// a word, so it remembers the first write that failed, whoever made it. What a run prints is best effort and goes past it, to an
// outlet: the run folder has it, too.
type product struct {
	file *os.File
	any  bool // something was written
	err  error
}

func (p *product) Write(text []byte) (int, error) {
	p.any = true
	n, err := p.file.Write(text)
	p.err = cmp.Or(p.err, err)
	return n, err
}

// delivered closes the file, for some file systems tell only then that there was no room, and is nil if all that was written is
// there.
func (p *product) delivered() error {
	if !p.any {
		return nil
	}
	if err := errors.Join(p.err, p.file.Close()); err != nil {
		return fmt.Errorf("standard output is not complete: %w", err)
	}
	return nil
}

// fileOf is the file behind a standard output, for processes that are to write to it themselves, and for runs.
func fileOf(w io.Writer) io.Writer {
	if p, ok := w.(*product); ok {
		return p.file
	}
	return w
}
