package coordinate

import (
	"fmt"
	"math"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/ps/workload/dataset"
)

// alike looks for workers that train on the same samples, as where the DataLoader of a script shuffles with the same seed on all of them:
// then more workers bring nothing, and nothing else shows it. Where workers step together, the same samples give the same losses, to the
// bit.
type alike struct {
	on    bool             // the script chooses samples
	first [alikeSteps]seen // losses by iteration, as they come
	told  bool
}

// alikeSteps is how many of the first iterations must agree. A network that begins with zeros has the same loss in its first iteration,
// whatever the samples are.
const alikeSteps = 3

// seen is one iteration: the losses of the first two workers that differ in number, and whether they are the same.
type seen struct {
	worker [2]int32
	loss   [2]float64
	n      int
}

// newAlike watches scripts that choose samples, on several workers.
func newAlike(c *configs.Config, workers int) alike {
	return alike{on: c.Data.Sampler == dataset.SamplerScript && workers > 1}
}

// folded takes the loss of a push, and returns what to warn of; "": nothing.
func (a *alike) folded(m *wire.Header) string {
	if !a.on || a.told || m.Iter >= alikeSteps || m.Samples == 0 {
		return ""
	}
	s := &a.first[m.Iter]
	if s.n == 2 || s.n == 1 && s.worker[0] == m.Worker {
		return ""
	}
	s.worker[s.n], s.loss[s.n] = m.Worker, m.Loss/float64(m.Samples)
	if s.n++; !a.same() {
		return ""
	}
	a.told = true
	return fmt.Sprintf("workers %d and %d have the same losses in their first %d iterations, to the bit: it seems that they train on the "+
		"same samples, and more workers bring nothing; give each worker other samples, such as those of DistributedSampler(data, "+
		"num_replicas=ps.workers, rank=ps.worker)",
		min(s.worker[0], s.worker[1]), max(s.worker[0], s.worker[1]), alikeSteps)
}

// same says whether two workers have the same losses in each of the first iterations, and those change.
func (a *alike) same() bool {
	changes := false
	for i := range a.first {
		s := &a.first[i]
		if s.n < 2 || math.Float64bits(s.loss[0]) != math.Float64bits(s.loss[1]) {
			return false
		}
		changes = changes || s.loss[0] != a.first[0].loss[0]
	}
	return changes
}
