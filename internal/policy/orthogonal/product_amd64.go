//go:build !purego

package orthogonal

import "golang.org/x/sys/cpu"

// The processor has the instructions, and the operating system keeps their registers. The tag purego turns both off.
var hasAVX512, hasAVX2 = cpu.X86.HasAVX512F, cpu.X86.HasAVX2

// tileAVX512 adds the terms of a tile to 4 rows of dst, and tileAVX2 those of its left half, or of its right one: 4 elements of left and a
// row of right for each term.

//go:noescape
func tileAVX512(dst *float32, stride int, left, right *float32, terms int)

//go:noescape
func tileAVX2(dst *float32, stride int, left, right *float32, terms int)

func tile(dst []float32, stride int, left, right []float32) {
	if !hasAVX2 && !hasAVX512 {
		tileGo(dst, stride, left, right)
		return
	}
	const half = tileCols / 2
	terms := len(left) / tileRows
	_, _ = dst[(tileRows-1)*stride+tileCols-1], right[terms*tileCols-1]
	if hasAVX512 {
		tileAVX512(&dst[0], stride, &left[0], &right[0], terms)
		return
	}
	tileAVX2(&dst[0], stride, &left[0], &right[0], terms)
	tileAVX2(&dst[half], stride, &left[0], &right[half], terms)
}
