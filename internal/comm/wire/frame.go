package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A control message is a frame: one record or more, each a header or a piece, and nothing after them. Records are
// handled in their order.
//
//	header   Size bytes
//	piece    PieceSize bytes: magic 0, version 2, kind 3, piece 4, length 8; then length bytes (none after a PieceThere)
//
// A piece names only its index: the header of its push or reply precedes it, in this frame or in an earlier one.

// PieceSize is the size of a piece's head in a frame, in bytes.
const PieceSize = 12

// EncodePiece writes the head of a PushPiece or a ReplyPiece of n bytes into dst; the caller appends the n bytes. A
// PieceThere has 0 bytes. Anything else is the caller's bug and panics.
func EncodePiece(dst []byte, kind Kind, piece int32, n int) {
	if kind < PushPiece || kind >= Kinds || piece < 0 || n < 0 || n > math.MaxInt32 || (n == 0) != (kind == PieceThere) {
		panic(fmt.Sprintf("wire: EncodePiece of a %v, piece %d, %d bytes", kind, piece, n))
	}
	le := binary.LittleEndian
	dst = dst[:PieceSize]
	le.PutUint16(dst, magic)
	dst[2], dst[3] = Version, byte(kind)
	le.PutUint32(dst[4:], uint32(piece))
	le.PutUint32(dst[8:], uint32(n))
}

// Record is one entry of a frame: a header or a piece.
type Record struct {
	Header        // of a piece: only Kind is set
	Piece  int32  // of a piece: index into the plan's pieces
	Data   []byte // of a piece: its values, a slice of the frame; of a header: nil
	Size   int    // in the frame, in bytes
}

// Next reads the first record of a nonempty frame, and returns the rest of the frame. It accepts exactly what Encode
// and EncodePiece write.
func Next(frame []byte) (r Record, rest []byte, err error) {
	if len(frame) < PieceSize || Kind(frame[3]) < PushPiece || Kind(frame[3]) >= Kinds || frame[2] != Version {
		r.Header, err = Decode(frame)
		if err != nil {
			return Record{}, nil, err
		}
		r.Size = Size
		return r, frame[Size:], nil
	}
	le := binary.LittleEndian
	r.Kind, r.Piece = Kind(frame[3]), int32(le.Uint32(frame[4:]))
	n := le.Uint32(frame[8:])
	switch left := len(frame) - PieceSize; {
	case le.Uint16(frame) != magic:
		return Record{}, nil, fmt.Errorf("wire: record starts with %#04x, want %#04x: the message is damaged", le.Uint16(frame), magic)
	case r.Piece < 0:
		return Record{}, nil, fmt.Errorf("wire: %v of piece %d: the message is damaged", r.Kind, r.Piece)
	case (n == 0) != (r.Kind == PieceThere) || int64(n) > int64(left):
		return Record{}, nil, fmt.Errorf("wire: %v of %d bytes with %d bytes left in the frame: the message is damaged", r.Kind, n, left)
	}
	r.Size = PieceSize + int(n)
	r.Data = frame[PieceSize:r.Size:r.Size]
	return r, frame[r.Size:], nil
}
