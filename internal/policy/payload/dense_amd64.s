//go:build !purego

#include "textflag.h"

// Between float32 and the formats of 16 bits that travel, sixteen elements a turn: binary16 (half) and bfloat16 (brain). dense.go
// has the twin of each in Go (encodeHalfF16C: encodeHalfGo), and a pass gives its bits.
//
// Why assembly: the compiler of Go makes no vector instructions of a loop, and the twin of half takes many operations for what
// the processor does in one (F16C). Why no generator: four loops of ten lines are shorter than a program that writes them.
//
// What a pass does: it takes two registers of eight elements, converts them, and stores 16 values. The number of elements is a
// multiple of 16 and not 0; dense_amd64.go gives what is left over to the twin.
//
// Registers: DI is dst, SI src; both move on with each turn. CX is the elements that are left. Y0 to Y7 are what is computed with.
//
// Tests: TestDenseKernelsEqualTheGoLoops compares the bits for lengths to 70, vectors at any place, and numbers of every exponent,
// with NaNs; TestEveryPatternDecodes decodes all patterns. With the tag purego all tests of the package run on the twins alone.

// func encodeHalfF16C(dst []byte, src []float32)
TEXT ·encodeHalfF16C(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ src_base+24(FP), SI
	MOVQ src_len+32(FP), CX

encodeHalf16:
	VMOVUPS   (SI), Y0
	VMOVUPS   32(SI), Y1
	VCVTPS2PH $0, Y0, (DI)  // 0: to nearest, ties to even
	VCVTPS2PH $0, Y1, 16(DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       encodeHalf16
	VZEROUPPER
	RET

// func decodeHalfF16C(dst []float32, src []byte)
TEXT ·decodeHalfF16C(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ src_base+24(FP), SI

decodeHalf16:
	VCVTPH2PS (SI), Y0
	VCVTPH2PS 16(SI), Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       decodeHalf16
	VZEROUPPER
	RET

// BRAIN leaves toBrain of the eight elements of x in r, as 32 bits each. Y13 is 1, Y14 0x7fff and Y15 0x40 in each
// element. To x as an integer it adds 0x7fff, and one more where the upper half is odd, and takes the upper half: that rounds
// to nearest, ties to even. A NaN, of which comparison 3 is true, gets its own upper half instead, made quiet by 0x40.
#define BRAIN(x, r, nan, quiet) \
	VPSRLD    $16, x, quiet; \
	VPAND     quiet, Y13, r; \
	VPADDD    Y14, r, r; \
	VPADDD    x, r, r; \
	VPSRLD    $16, r, r; \
	VPOR      Y15, quiet, quiet; \
	VCMPPS    $3, x, x, nan; \
	VBLENDVPS nan, quiet, r, r

// func encodeBrainAVX2(dst []byte, src []float32)
TEXT ·encodeBrainAVX2(SB), NOSPLIT, $0-48
	MOVQ     dst_base+0(FP), DI
	MOVQ     src_base+24(FP), SI
	MOVQ     src_len+32(FP), CX
	VPCMPEQD Y15, Y15, Y15
	VPSRLD   $31, Y15, Y13
	VPSRLD   $17, Y15, Y14
	VPSLLD   $6, Y13, Y15

encodeBrain16:
	VMOVUPS   (SI), Y0
	VMOVUPS   32(SI), Y1
	BRAIN(Y0, Y2, Y4, Y6)
	BRAIN(Y1, Y3, Y5, Y7)
	VPACKUSDW Y3, Y2, Y2     // in each half of the register: four of Y2, four of Y3
	VPERMQ    $0xd8, Y2, Y2  // the quarters in the order 0, 2, 1, 3
	VMOVDQU   Y2, (DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       encodeBrain16
	VZEROUPPER
	RET

// func decodeBrainAVX2(dst []float32, src []byte)
//
// A bfloat16 is the upper half of its float32: widen to 32 bits, shift up.
TEXT ·decodeBrainAVX2(SB), NOSPLIT, $0-48
	MOVQ dst_base+0(FP), DI
	MOVQ dst_len+8(FP), CX
	MOVQ src_base+24(FP), SI

decodeBrain16:
	VPMOVZXWD (SI), Y0
	VPMOVZXWD 16(SI), Y1
	VPSLLD    $16, Y0, Y0
	VPSLLD    $16, Y1, Y1
	VMOVDQU   Y0, (DI)
	VMOVDQU   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       decodeBrain16
	VZEROUPPER
	RET
