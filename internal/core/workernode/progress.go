package workernode

import (
	"math"

	"fluentps/internal/comm/wire"
)

// TakesSteps makes the worker remember what replies tell of the run. It must be called before the first input.
func (w *Worker) TakesSteps() { w.progress = &wire.Progress{Loss: math.NaN(), Share: 1} }

// Progress is what the lead shard's server told last.
func (w *Worker) Progress() wire.Progress { return *w.progress }

// noteProgress remembers what a reply tells.
func (w *Worker) noteProgress(m *wire.Header) {
	if w.progress != nil && m.Shard == 0 {
		*w.progress = wire.ProgressOf(m)
	}
}
