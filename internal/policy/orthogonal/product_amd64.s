//go:build !purego

#include "textflag.h"

// A tile of a product of matrices: 4 rows of sums stay in registers, 32 of a row with AVX-512 and 16 with AVX2. It has the bits of tileGo:
// the same roundings in the same order, so no multiplication is fused with an addition.
//
// Why assembly: the compiler of Go makes no vector instructions of a loop. BenchmarkMake shows all three.
// Test: TestATileEqualsItsTwin.
//
// Registers, where V is Z with AVX-512 and Y with AVX2:
//   DI, R9, R10, R11   rows of dst
//   SI, DX             left and right
//   CX                 terms that are left
//   V0 to V7           the sums, two vectors for each row
//   V8, V9             a row of right
//   V10 to V15         elements of left in all places, and products

// ROW adds element off of left times the row of right, in c and d, to the sums a and b.
#define ROW(off, c, d, a, b, x, p, q) \
	VBROADCASTSS off(SI), x; \
	VMULPS       c, x, p; \
	VMULPS       d, x, q; \
	VADDPS       p, a, a; \
	VADDPS       q, b, b

// func tileAVX2(dst *float32, stride int, left, right *float32, terms int)
TEXT ·tileAVX2(SB), NOSPLIT, $0-40
	MOVQ    dst+0(FP), DI
	MOVQ    stride+8(FP), R8
	MOVQ    left+16(FP), SI
	MOVQ    right+24(FP), DX
	MOVQ    terms+32(FP), CX
	LEAQ    (DI)(R8*4), R9
	LEAQ    (DI)(R8*8), R10
	LEAQ    (R9)(R8*8), R11
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS (R9), Y2
	VMOVUPS 32(R9), Y3
	VMOVUPS (R10), Y4
	VMOVUPS 32(R10), Y5
	VMOVUPS (R11), Y6
	VMOVUPS 32(R11), Y7
	TESTQ   CX, CX
	JZ      end
	PCALIGN $32

loop:
	VMOVUPS (DX), Y8
	VMOVUPS 32(DX), Y9
	ROW(0, Y8, Y9, Y0, Y1, Y10, Y11, Y12)
	ROW(4, Y8, Y9, Y2, Y3, Y13, Y14, Y15)
	ROW(8, Y8, Y9, Y4, Y5, Y10, Y11, Y12)
	ROW(12, Y8, Y9, Y6, Y7, Y13, Y14, Y15)
	ADDQ    $16, SI
	ADDQ    $128, DX
	DECQ    CX
	JNZ     loop

end:
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, (R9)
	VMOVUPS Y3, 32(R9)
	VMOVUPS Y4, (R10)
	VMOVUPS Y5, 32(R10)
	VMOVUPS Y6, (R11)
	VMOVUPS Y7, 32(R11)
	VZEROUPPER
	RET

// func tileAVX512(dst *float32, stride int, left, right *float32, terms int)
TEXT ·tileAVX512(SB), NOSPLIT, $0-40
	MOVQ    dst+0(FP), DI
	MOVQ    stride+8(FP), R8
	MOVQ    left+16(FP), SI
	MOVQ    right+24(FP), DX
	MOVQ    terms+32(FP), CX
	LEAQ    (DI)(R8*4), R9
	LEAQ    (DI)(R8*8), R10
	LEAQ    (R9)(R8*8), R11
	VMOVUPS (DI), Z0
	VMOVUPS 64(DI), Z1
	VMOVUPS (R9), Z2
	VMOVUPS 64(R9), Z3
	VMOVUPS (R10), Z4
	VMOVUPS 64(R10), Z5
	VMOVUPS (R11), Z6
	VMOVUPS 64(R11), Z7
	TESTQ   CX, CX
	JZ      end
	PCALIGN $32

loop:
	VMOVUPS (DX), Z8
	VMOVUPS 64(DX), Z9
	ROW(0, Z8, Z9, Z0, Z1, Z10, Z11, Z12)
	ROW(4, Z8, Z9, Z2, Z3, Z13, Z14, Z15)
	ROW(8, Z8, Z9, Z4, Z5, Z10, Z11, Z12)
	ROW(12, Z8, Z9, Z6, Z7, Z13, Z14, Z15)
	ADDQ    $16, SI
	ADDQ    $128, DX
	DECQ    CX
	JNZ     loop

end:
	VMOVUPS Z0, (DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, (R9)
	VMOVUPS Z3, 64(R9)
	VMOVUPS Z4, (R10)
	VMOVUPS Z5, 64(R10)
	VMOVUPS Z6, (R11)
	VMOVUPS Z7, 64(R11)
	VZEROUPPER
	RET
