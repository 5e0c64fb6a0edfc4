package shard

import (
	"testing"
	"unsafe"
)

func TestAPieceTakesWhatItsSizeSays(t *testing.T) {
	if got := unsafe.Sizeof(Piece{}); got != PieceSize {
		t.Errorf("a Piece takes %d bytes, and PieceSize is %d", got, PieceSize)
	}
}
