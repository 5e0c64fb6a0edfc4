package build

import (
	"time"

	"fluentps/internal/policy/work/code"
	"fluentps/ps/scheme"
)

// decoder is the code of a run as its schemes see it.
type decoder struct {
	*code.Code
	samples  int64
	deadline time.Duration
	private  bool
}

func (d *decoder) Samples() int64          { return d.samples }
func (d *decoder) Deadline() time.Duration { return d.deadline }
func (d *decoder) Private() bool           { return d.private }

// Decoder makes the code of the run; nil if pushes are not coded.
func (b *Run) Decoder() (scheme.Code, error) {
	c, err := b.Config.Code(len(b.Roles.Workers))
	if c == nil || err != nil {
		return nil, err
	}
	d := &decoder{c, 0, b.Config.Work.Code.Deadline, b.Config.Work.Code.Alpha > 0}
	for _, n := range b.Config.Batches(len(b.Roles.Workers)) {
		d.samples += int64(n)
	}
	return d, nil
}
