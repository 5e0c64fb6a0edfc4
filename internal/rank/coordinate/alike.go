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
	on     bool                          // the script chooses samples
	losses map[int32][alikeSteps]float64 // by worker, of its first iterations; NaN: not yet
	told   bool
}

// alikeSteps is how many of the first iterations must agree. A network that begins with zeros has the same loss in its first iteration,
// whatever the samples are.
const alikeSteps = 3

// newAlike watches scripts that choose samples, on several workers.
func newAlike(c *configs.Config, workers int) alike {
	return alike{on: c.Data.Deal.Sampler == dataset.SamplerScript && workers > 1}
}

// folded takes the loss of a push, and returns what to warn of; "": nothing.
func (a *alike) folded(m *wire.Header) string {
	if !a.on || a.told || m.Iter >= alikeSteps || m.Samples == 0 {
		return ""
	}
	mine, known := a.losses[m.Worker]
	if !known {
		for i := range mine {
			mine[i] = math.NaN()
		}
	}
	if !math.IsNaN(mine[m.Iter]) {
		return ""
	}
	mine[m.Iter] = m.Loss / float64(m.Samples)
	if a.losses == nil {
		a.losses = map[int32][alikeSteps]float64{}
	}
	a.losses[m.Worker] = mine
	if mine[0] == mine[1] && mine[0] == mine[2] { // a loss that is constant says nothing
		return ""
	}
	for other, theirs := range a.losses {
		if other != m.Worker && theirs == mine { // one without all losses has a NaN, which equals nothing
			a.told = true
			return fmt.Sprintf("workers %d and %d have the same losses in their first %d iterations, to the bit: it seems that they train on "+
				"the same samples, and more workers bring nothing; give each worker other samples, such as those of DistributedSampler(data, "+
				"num_replicas=ps.workers, rank=ps.worker)", min(other, m.Worker), max(other, m.Worker), alikeSteps)
		}
	}
	return ""
}
