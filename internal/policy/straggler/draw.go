package straggler

import "math/rand/v2"

// stream keeps these draws apart from all others of a run with the same seed.
const stream = 0x7374726167676c65

// draws gives each iteration of a worker a generator of its own. So what is drawn for an iteration does not depend on what was drawn
// before, and a run that resumes needs no state.
type draws struct {
	key    uint64
	source rand.PCG
	*rand.Rand
}

func newDraws(e Env) *draws {
	d := &draws{key: mix(mix(e.Seed^stream, uint64(e.Place)), uint64(e.Worker))}
	d.Rand = rand.New(&d.source)
	return d
}

// at returns the generator of an iteration, or of an epoch.
func (d *draws) at(i int64) *rand.Rand {
	d.source.Seed(mix(d.key, uint64(i)), d.key)
	return d.Rand
}

// of returns the generator of a part of an iteration that draws for itself. The first part draws as an iteration does.
func (d *draws) of(i, part int64) *rand.Rand {
	if part == 0 {
		return d.at(i)
	}
	key := mix(d.key, uint64(part))
	d.source.Seed(mix(key, uint64(i)), key)
	return d.Rand
}

// mix is the finalizer of SplitMix64 over both numbers.
func mix(a, b uint64) uint64 {
	z := a + 0x9e3779b97f4a7c15*(b+1)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
