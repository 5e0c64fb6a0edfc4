//go:build !purego

package payload

import "golang.org/x/sys/cpu"

// Instructions that the processor has and whose registers the operating system saves. The tag purego leaves both out.
var (
	hasAVX2 = cpu.X86.HasAVX2
	hasF16C = cpu.X86.HasAVX2 && cpu.X86.HasF16C
)

// The kernels take a positive multiple of 16 elements. The Go loops do the rest.

//go:noescape
func encodeHalfF16C(dst []byte, src []float32)

//go:noescape
func decodeHalfF16C(dst []float32, src []byte)

//go:noescape
func encodeBrainAVX2(dst []byte, src []float32)

//go:noescape
func decodeBrainAVX2(dst []float32, src []byte)

func encodeHalf(dst []byte, src []float32) { encode(dst, src, hasF16C, encodeHalfF16C, encodeHalfGo) }
func decodeHalf(dst []float32, src []byte) { decode(dst, src, hasF16C, decodeHalfF16C, decodeHalfGo) }
func encodeBrain(dst []byte, src []float32) {
	encode(dst, src, hasAVX2, encodeBrainAVX2, encodeBrainGo)
}
func decodeBrain(dst []float32, src []byte) {
	decode(dst, src, hasAVX2, decodeBrainAVX2, decodeBrainGo)
}

func encode(dst []byte, src []float32, has bool, pass, twin func(dst []byte, src []float32)) {
	k := len(src) &^ 15
	if !has {
		k = 0
	}
	if k > 0 {
		pass(dst[:2*k], src[:k])
	}
	twin(dst[2*k:], src[k:])
}

func decode(dst []float32, src []byte, has bool, pass, twin func(dst []float32, src []byte)) {
	k := len(dst) &^ 15
	if !has {
		k = 0
	}
	if k > 0 {
		pass(dst[:k], src[:2*k])
	}
	twin(dst[k:], src[2*k:])
}
