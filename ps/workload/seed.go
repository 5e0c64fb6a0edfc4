package workload

import (
	"hash/fnv"
	"math"

	"fluentps/ps/workload/dataset/draw"
)

// Fill writes the initial values of elements lo to lo+len(dst)-1 of p: uniform in ±sqrt(6/Fan), or p.Start if Fan is 0. That
// variance keeps the ReLU activations of all layers alike (He et al. 2015, uniform form). A value is a pure function of (seed,
// p.Name, element), so every rank can fill its own slice.
func Fill(dst []float32, seed uint64, p Param, lo int) {
	if p.Fan == 0 {
		for i := range dst {
			dst[i] = p.Start
		}
		return
	}
	h := fnv.New64a()
	h.Write([]byte(p.Name))
	key := draw.Mix(seed, h.Sum64())
	limit := math.Sqrt(6 / float64(p.Fan))
	for i := range dst {
		u := draw.Mix(key, uint64(lo+i)) >> 40 // 24 bits: exact in float32
		dst[i] = float32(limit * (float64(u)/(1<<23) - 1))
	}
}

// Initial gives the parameters of a model their first values, in place of Fill.
type Initial interface {
	// Fill writes those of elements lo to lo+len(dst)-1 of parameter k, in model order. Its error names the file that cannot be read.
	Fill(dst []float32, k, lo int) error
}
