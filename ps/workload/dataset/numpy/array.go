package numpy

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Array is an array of which the elements are mapped or in memory.
type Array struct {
	Name    string // in an archive, without .npy; "" if the file has no other
	Type    Type
	Shape   []int
	Fortran bool // it was in Fortran order, and was converted
	Packed  bool // it was unpacked into memory

	big  bool
	data []byte // the elements, in C order
}

// Rows is the length of the first dimension; of an array without dimensions 1.
func (a *Array) Rows() int {
	if len(a.Shape) == 0 {
		return 1
	}
	return a.Shape[0]
}

// Width is the number of elements of a row.
func (a *Array) Width() int {
	n := 1
	for _, d := range a.Shape[min(1, len(a.Shape)):] {
		n *= d
	}
	return n
}

// Elements is the number of elements.
func (a *Array) Elements() int { return len(a.data) / a.Type.Size }

// Bytes is the size of the elements.
func (a *Array) Bytes() int64 { return int64(len(a.data)) }

// Raw are the bytes of n elements from one on, as the file has them.
func (a *Array) Raw(first, n int) []byte { return a.data[first*a.Type.Size:][:n*a.Type.Size] }

// machineIsBig is the order of bytes of this processor.
var machineIsBig = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// order is the order of bytes of a machine.
type order interface {
	Uint16([]byte) uint16
	Uint32([]byte) uint32
	Uint64([]byte) uint64
}

// Floats writes the elements from first on to dst, as float32. A float64 that no float32 can hold becomes infinite.
func (a *Array) Floats(dst []float32, first int) {
	b := a.data[first*a.Type.Size:][:len(dst)*a.Type.Size]
	if a.Type == (Type{'f', 4}) && a.big == machineIsBig && len(dst) > 0 { // as fast as memory
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), b)
		return
	}
	if a.big {
		floats(dst, b, a.Type, binary.BigEndian)
		return
	}
	floats(dst, b, a.Type, binary.LittleEndian)
}

// floats is instantiated for each order, so that the compiler makes one load of each element.
func floats[O order](dst []float32, b []byte, t Type, o O) {
	switch t {
	case Type{'f', 4}:
		for i := range dst {
			dst[i] = math.Float32frombits(o.Uint32(b[4*i:]))
		}
	case Type{'f', 8}:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(o.Uint64(b[8*i:])))
		}
	case Type{'f', 2}:
		for i := range dst {
			dst[i] = Half(o.Uint16(b[2*i:]))
		}
	case Type{'b', 1}, Type{'u', 1}:
		for i := range dst {
			dst[i] = float32(b[i])
		}
	default:
		for i := range dst {
			if v := whole(b[i*t.Size:], t, o); t == (Type{'u', 8}) {
				dst[i] = float32(uint64(v))
			} else {
				dst[i] = float32(v)
			}
		}
	}
}

// whole is an integer, or the bits of one of 64 bits without a sign.
func whole[O order](b []byte, t Type, o O) int64 {
	switch t.Size {
	case 1:
		if t.Kind == 'i' {
			return int64(int8(b[0]))
		}
		return int64(b[0])
	case 2:
		if t.Kind == 'i' {
			return int64(int16(o.Uint16(b)))
		}
		return int64(o.Uint16(b))
	case 4:
		if t.Kind == 'i' {
			return int64(int32(o.Uint32(b)))
		}
		return int64(o.Uint32(b))
	}
	return int64(o.Uint64(b))
}

// Whole is element i, if that is a whole number of at most 63 bits.
func (a *Array) Whole(i int) (v int64, ok bool) {
	b := a.data[i*a.Type.Size:]
	if a.Type.Kind != 'f' {
		if v = whole[order](b, a.Type, a.bytes()); v < 0 && a.Type == (Type{'u', 8}) {
			return 0, false
		}
		return v, true
	}
	x := a.Float(i)
	if x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	return int64(x), true
}

// Float is element i.
func (a *Array) Float(i int) float64 {
	b, o := a.data[i*a.Type.Size:], a.bytes()
	switch a.Type {
	case Type{'f', 8}:
		return math.Float64frombits(o.Uint64(b))
	case Type{'f', 4}:
		return float64(math.Float32frombits(o.Uint32(b)))
	case Type{'f', 2}:
		return float64(Half(o.Uint16(b)))
	case Type{'u', 8}:
		return float64(o.Uint64(b))
	}
	return float64(whole[order](b, a.Type, o))
}

func (a *Array) bytes() order {
	if a.big {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Half is a float of 16 bits, of IEEE 754.
func Half(bits uint16) float32 {
	sign := uint32(bits>>15) << 31
	exponent, fraction := uint32(bits>>10&0x1f), uint32(bits&0x3ff)
	switch {
	case exponent == 0x1f: // infinite, or no number
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	case exponent > 0:
		return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
	}
	v := float32(fraction) / (1 << 24)
	if sign != 0 {
		v = -v
	}
	return v
}

// fromFortran returns elements in C order.
func fromFortran(data []byte, shape []int, size int) []byte {
	out := make([]byte, len(data))
	stride := make([]int, len(shape)) // of each dimension in data
	for d, s := 0, size; d < len(shape); d++ {
		stride[d] = s
		s *= shape[d]
	}
	index := make([]int, len(shape))
	from := 0
	for to := 0; to < len(out); to += size {
		copy(out[to:to+size], data[from:from+size])
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			if from += stride[d]; index[d] < shape[d] {
				break
			}
			from -= stride[d] * shape[d]
			index[d] = 0
		}
	}
	return out
}
