package payload

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Memory is what a codec remembers of a piece between two of its vectors. The zero value remembers nothing.
type Memory struct {
	At     uint32 `json:"at"`     // bits of the magnitude from which elements were sent; 0: choose exactly
	Reused int32  `json:"reused"` // vectors since that magnitude was chosen exactly
}

// Remembering is a Codec that chooses by what it chose before.
type Remembering interface {
	Codec
	// EncodeAfter is Encode with the memory of the piece, which it updates.
	EncodeAfter(m *Memory, dst []byte, src, residual []float32) int
}

// Thresholds lists the values of Params.Thresholds.
func Thresholds() []string { return []string{"exact", "reused"} }

// A threshold is chosen exactly for every ReuseMax-th vector, and reused in between, as in Ok-Topk (Li and Hoefler,
// PPoPP 2022) [Q]: its code has 32, and changes a threshold that lets fewer than 2k/3 or more than 5k/4 elements
// pass. By how much is ours [R]. Where more would pass, k elements are chosen exactly here, so that a message has a
// limit.
const (
	ReuseMax = 32

	lowerEach  = 1.25 // divides a threshold that let too few pass
	moreThanK  = 1.25
	fewerThanK = 2.0 / 3
)

// reusing is topk whose thresholds are reused.
type reusing struct{ sparse }

// EncodeAfter passes over the vector once, where an exact choice takes five passes.
func (s *reusing) EncodeAfter(m *Memory, dst []byte, src, residual []float32) int {
	if m.At == 0 || m.Reused >= ReuseMax-1 {
		n := s.Encode(dst, src, residual)
		*m = Memory{At: s.last}
		return n
	}
	if residual != nil && len(residual) != len(src) {
		panic(fmt.Sprintf("payload: a residual of %d elements for a vector of %d", len(residual), len(src)))
	}
	pairs := dst[countBytes:s.EncodedMax(len(src))]
	count, fits := addAndPick(pairs, src, residual, m.At)
	if !fits {
		n := s.encode(dst, src, residual)
		*m = Memory{At: s.last}
		return n
	}
	if residual != nil {
		for k := range count {
			residual[binary.LittleEndian.Uint32(pairs[pairBytes*k:])] = 0
		}
	}
	binary.LittleEndian.PutUint32(dst, uint32(count))
	m.Reused++
	if float64(count) < fewerThanK*float64(s.most(len(src))) {
		m.At = max(1, magnitude(math.Float32frombits(m.At)/lowerEach))
	}
	return countBytes + pairBytes*count
}

// addAndPick adds src to the residual, if there is one, and writes the elements of the sum of a magnitude of at least
// at. fits is false if there are more than pairs has room for; the residual is complete all the same.
func addAndPick(pairs []byte, src, residual []float32, at uint32) (count int, fits bool) {
	room := len(pairs) / pairBytes
	fits = true
	if residual == nil {
		for i, x := range src {
			if magnitude(x) < at {
				continue
			}
			if count == room {
				return count, false
			}
			binary.LittleEndian.PutUint64(pairs[pairBytes*count:], uint64(i)|uint64(math.Float32bits(x))<<32)
			count++
		}
		return count, true
	}
	residual = residual[:len(src)]
	for i, x := range src {
		x += residual[i]
		residual[i] = x
		if magnitude(x) < at {
			continue
		}
		if count == room {
			fits = false
			continue
		}
		binary.LittleEndian.PutUint64(pairs[pairBytes*count:], uint64(i)|uint64(math.Float32bits(x))<<32)
		count++
	}
	return count, fits
}
