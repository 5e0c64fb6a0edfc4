package payload

import (
	"encoding/binary"
	"fmt"
	"math"
)

// sparse sends pairs of index and value.
type sparse struct {
	ratio     float64
	threshold float32
	cut       bool    // only magnitudes above threshold are sent
	slack     float64 // how many times k elements may be sent; 0: k
	choice    choice
	last      uint32 // the magnitude from which the last vector's elements were sent
}

const (
	countBytes = 4
	pairBytes  = 8
	indexMax   = math.MaxUint32
)

// most returns the largest number of n elements that is sent: at least one, if n > 0.
func (s *sparse) most(n int) int {
	if int64(n) > indexMax {
		panic(fmt.Sprintf("payload: a vector of %d elements; an index has 32 bits", n))
	}
	return min(n, int(math.Ceil(s.ratio*float64(n))))
}

// limit returns the largest number of n elements that a message may have.
func (s *sparse) limit(n int) int {
	return max(s.most(n), min(n, int(s.slack*float64(s.most(n)))))
}

func (s *sparse) EncodedMax(n int) int { return countBytes + pairBytes*s.limit(n) }

func (s *sparse) Encode(dst []byte, src, residual []float32) int {
	if residual != nil {
		if len(residual) != len(src) {
			panic(fmt.Sprintf("payload: a residual of %d elements for a vector of %d", len(residual), len(src)))
		}
		for i, x := range src {
			residual[i] += x
		}
	}
	return s.encode(dst, src, residual)
}

// encode is Encode where the residual, if there is one, has the vector already.
func (s *sparse) encode(dst []byte, src, residual []float32) int {
	v := src
	if residual != nil {
		v = residual
	}
	most := s.most(len(v))
	at, ties := magnitude(s.threshold), 0
	if !s.cut || above(v, at) > most {
		at, ties = s.choice.largest(v, most)
	}
	s.last = at
	return countBytes + pairBytes*encodePairs(dst[:countBytes+pairBytes*most], v, residual, at, ties)
}

// encodePairs writes the elements of v of a magnitude above at, and the first ties elements whose magnitude is at. It
// clears their residual, if there is one.
func encodePairs(dst []byte, v, residual []float32, at uint32, ties int) (count int) {
	pairs := dst[countBytes:]
	for i, x := range v {
		m := magnitude(x)
		if m < at {
			continue
		}
		if m == at {
			if ties == 0 {
				continue
			}
			ties--
		}
		binary.LittleEndian.PutUint64(pairs[pairBytes*count:], uint64(i)|uint64(math.Float32bits(x))<<32)
		if residual != nil {
			residual[i] = 0
		}
		count++
	}
	binary.LittleEndian.PutUint32(dst, uint32(count))
	return count
}

func (s *sparse) Decode(dst []float32, src []byte) error {
	if len(src) < countBytes {
		return fmt.Errorf("payload: received %d bytes, but a count alone has %d", len(src), countBytes)
	}
	count, pairs := binary.LittleEndian.Uint32(src), src[countBytes:]
	if most := s.limit(len(dst)); int64(count) > int64(most) {
		return fmt.Errorf("payload: received %d of %d elements, but ratio %v allows %d; both sides must have the same payload and shards",
			count, len(dst), s.ratio, most)
	}
	if len(pairs) != int(count)*pairBytes {
		return fmt.Errorf("payload: received %d bytes for %d pairs of %d bytes", len(pairs), count, pairBytes)
	}
	clear(dst)
	next := uint32(0) // the smallest index still allowed
	for k := 0; k < len(pairs); k += pairBytes {
		pair := binary.LittleEndian.Uint64(pairs[k:])
		i := uint32(pair)
		if i < next || int64(i) >= int64(len(dst)) {
			return fmt.Errorf("payload: received index %d as pair %d; want %d to %d: the message is damaged",
				i, k/pairBytes, next, len(dst)-1)
		}
		dst[i] = math.Float32frombits(uint32(pair >> 32))
		next = i + 1
	}
	return nil
}
