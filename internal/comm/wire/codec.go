package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Version of the layout below. Raise it with any change of the layout or of a field's meaning.
const Version = 11

// Size of an encoded header, in bytes.
const Size = 88

// magic is "fp"; it identifies messages of this program.
const magic = 'f' | 'p'<<8

// ErrVersion is wrapped by Decode if the sender is another build.
var ErrVersion = errors.New("wire: versions differ")

// Layout: magic 0, version 2, kind 3, flags 4, zero 5-7, six int32 at 8, seven 8-byte fields at
// 32. All little endian.

// Encode writes h into the first Size bytes of dst. A short dst or an unknown kind is the caller's bug and panics.
func Encode(dst []byte, h *Header) {
	if h.Kind == 0 || h.Kind >= PushPiece {
		panic(fmt.Sprintf("wire: Encode of %v", h.Kind))
	}
	dst = dst[:Size]
	le := binary.LittleEndian
	le.PutUint16(dst, magic)
	dst[2], dst[3], dst[4] = Version, byte(h.Kind), h.Flags
	dst[5], dst[6], dst[7] = 0, 0, 0
	for i, v := range [...]int32{h.Worker, h.Shard, h.Part, h.Parts, h.Owner, h.Epoch} {
		le.PutUint32(dst[8+4*i:], uint32(v))
	}
	for i, v := range [...]int64{h.Iter, h.Version, h.Samples, h.Correct, int64(math.Float64bits(h.Loss)), h.Blocked, h.Clock} {
		le.PutUint64(dst[32+8*i:], uint64(v))
	}
}

// Decode reads the header at the start of src. It accepts exactly what Encode writes.
func Decode(src []byte) (Header, error) {
	le := binary.LittleEndian
	switch {
	case len(src) < 3:
		return Header{}, fmt.Errorf("wire: message of %d bytes, a header has %d", len(src), Size)
	case le.Uint16(src) != magic:
		return Header{}, fmt.Errorf("wire: message starts with %#04x, a header with %#04x: not a fluentps message", le.Uint16(src), magic)
	case src[2] != Version:
		return Header{}, fmt.Errorf("%w: the sender has %d, this binary %d; start all ranks from one build", ErrVersion, src[2], Version)
	case len(src) < Size:
		return Header{}, fmt.Errorf("wire: message of %d bytes, a header has %d", len(src), Size)
	case Kind(src[3]) == 0 || Kind(src[3]) >= Kinds:
		return Header{}, fmt.Errorf("wire: unknown %v, this binary knows 1 to %d", Kind(src[3]), Kinds-1)
	case Kind(src[3]) >= PushPiece:
		return Header{}, fmt.Errorf("wire: a %v where a header must be", Kind(src[3]))
	case src[5]|src[6]|src[7] != 0:
		return Header{}, fmt.Errorf("wire: reserved bytes of a %v are not zero: the message is damaged", Kind(src[3]))
	}
	i32 := func(at int) int32 { return int32(le.Uint32(src[at:])) }
	i64 := func(at int) int64 { return int64(le.Uint64(src[at:])) }
	return Header{
		Kind: Kind(src[3]), Flags: src[4],
		Worker: i32(8), Shard: i32(12), Part: i32(16), Parts: i32(20), Owner: i32(24), Epoch: i32(28),
		Iter: i64(32), Version: i64(40), Samples: i64(48), Correct: i64(56),
		Loss: math.Float64frombits(le.Uint64(src[64:])), Blocked: i64(72), Clock: i64(80),
	}, nil
}
