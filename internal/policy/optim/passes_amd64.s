//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// The passes over vectors that a server spends its time in, eight elements at a time. passes.go, adam.go and norms.go have the
// twin of each in Go (sumAVX2: sumGo). A pass has the bits of its twin: it does the same roundings in the same order, so it
// fuses no multiplication with an addition.
//
// Why assembly: the compiler of Go makes no vector instructions of a loop, so a twin does one element at a time.
// BenchmarkBlend and BenchmarkStep show passes beside twins, which end in -go. Why no generator: a pass is a macro that says
// what happens to eight elements, and a loop around it. A program that writes these lines would be longer than they are.
//
// A pass returns the largest magnitude that it wrote. What it does: all its vectors are of one length, a multiple of 8 and not 0; passes_amd64.go gives what is left over to the
// twin. It does eight elements a turn until what is left is a multiple of 32, and then 32 a turn: four times the macro, each
// in registers that others have done with, so that none waits for another. The loop of 32 begins at a multiple of 32 bytes of code.
//
// Registers:
//   DI            dst
//   SI, DX        the first and the second operand
//   R8, R11       vectors of state: m, and the v of Adam
//   CX            elements done: (SI)(CX*4) is the next one of the first operand
//   R9            the length
//   R10           how many of the length are done eight at a time
//   Y0 to Y9      what is computed with; a macro is told which of them it may use
//   Y10, Y11      the largest magnitudes that were written so far, in turn, so that none waits for the one before
//   Y12 to Y15    scalars, each eight times; a macro says which
// adamAVX2 and normsAVX2 use theirs in another way, and say so.
//
// STORE is VMOVUPS, or VMOVNTPS, which writes around the caches: of a large version nothing would stay there until it is read.
// VMOVNTPS wants addresses that are multiples of 32, so stream is ignored where dst begins elsewhere. An SFENCE follows, because
// others could see later writes before these. VZEROUPPER at the end keeps code with old SSE instructions from waiting.
//
// The operands of a subtraction are in the order of this assembler: VSUBPS b, a, d is d = a - b.
//
// Tests: TestPassesEqualTheirTwins, TestAdamEqualsItsTwin and TestNormsEqualTheirTwin compare the bits for lengths to 200 (Adam:
// 100), vectors at any place, infinities, NaNs and subnormal numbers, dst over an operand and not, and look for writes behind the
// end. Any NaN counts as any other.
// With the tag purego all tests of the package run on the twins alone.

// TOP keeps the largest magnitude of x in top: twice its bits, which have lost the sign and have the order of the numbers. One that is
// not finite is larger than all others, so a pass tells without another look at memory whether it wrote such a value.
#define TOP(x, t, top) \
	VPADDD  x, x, t; \
	VPMAXUD t, top, top

// TOPOF leaves the largest magnitude of Y10 and Y11 in AX.
#define TOPOF \
	VPMAXUD      Y10, Y11, Y11; \
	VEXTRACTI128 $1, Y11, X10; \
	VPMAXUD      X10, X11, X11; \
	VPSHUFD      $0x4E, X11, X10; \
	VPMAXUD      X10, X11, X11; \
	VPSHUFD      $0xB1, X11, X10; \
	VPMAXUD      X10, X11, X11; \
	VMOVD        X11, AX; \
	SHRL         $1, AX

// func topAVX2(x []float32) uint32
TEXT ·topAVX2(SB), NOSPLIT, $0-28
	MOVQ  x_base+0(FP), SI
	MOVQ  x_len+8(FP), R9
	XORQ  CX, CX
	VPXOR Y10, Y10, Y10
	VPXOR Y11, Y11, Y11
	MOVQ  R9, R10
	ANDQ  $31, R10
	JZ    top32

top8:
	VMOVDQU (SI)(CX*4), Y0
	TOP(Y0, Y1, Y11)
	ADDQ    $8, CX
	CMPQ    CX, R10
	JB      top8

top32:
	CMPQ  CX, R9
	JAE   topEnd
	VPXOR Y8, Y8, Y8
	VPXOR Y9, Y9, Y9
	PCALIGN $32

top32Loop:
	VMOVDQU (SI)(CX*4), Y0
	VMOVDQU 32(SI)(CX*4), Y1
	VMOVDQU 64(SI)(CX*4), Y2
	VMOVDQU 96(SI)(CX*4), Y3
	VPSLLD  $1, Y0, Y0
	VPSLLD  $1, Y1, Y1
	VPSLLD  $1, Y2, Y2
	VPSLLD  $1, Y3, Y3
	VPMAXUD Y0, Y8, Y8
	VPMAXUD Y1, Y9, Y9
	VPMAXUD Y2, Y10, Y10
	VPMAXUD Y3, Y11, Y11
	ADDQ    $32, CX
	CMPQ    CX, R9
	JB      top32Loop
	VPMAXUD Y8, Y11, Y11
	VPMAXUD Y9, Y11, Y11

topEnd:
	TOPOF
	MOVL AX, ret+24(FP)
	VZEROUPPER
	RET

// SCALE is dst = weight*src. Y15 weight. off counts bytes behind CX, here and below.
#define SCALE(off, t, u, top) \
	VMULPS  off(SI)(CX*4), Y15, t; \
	VMOVUPS t, off(DI)(CX*4); \
	TOP(t, u, top)

// func scaleAVX2(dst, src []float32, weight float32) uint32
TEXT ·scaleAVX2(SB), NOSPLIT, $0-60
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), R9
	MOVQ         src_base+24(FP), SI
	VBROADCASTSS weight+48(FP), Y15
	XORQ         CX, CX
	VPXOR        Y10, Y10, Y10
	VPXOR        Y11, Y11, Y11
	MOVQ         R9, R10
	ANDQ         $31, R10
	JZ           scale32

scale8:
	SCALE(0, Y0, Y4, Y11)
	ADDQ $8, CX
	CMPQ CX, R10
	JB   scale8

scale32:
	CMPQ CX, R9
	JAE  scaleEnd
	PCALIGN $32

scale32Loop:
	SCALE(0, Y0, Y4, Y11)
	SCALE(32, Y1, Y5, Y10)
	SCALE(64, Y2, Y6, Y11)
	SCALE(96, Y3, Y7, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   scale32Loop

scaleEnd:
	TOPOF
	MOVL AX, ret+56(FP)
	VZEROUPPER
	RET

// SUM is dst = a + weight*b. Y15 weight.
#define SUM(STORE, off, t, u, top) \
	VMULPS  off(DX)(CX*4), Y15, t; \
	VADDPS  off(SI)(CX*4), t, t; \
	STORE   t, off(DI)(CX*4); \
	TOP(t, u, top)

// func sumAVX2(dst, a, b []float32, weight float32, stream bool) uint32
TEXT ·sumAVX2(SB), NOSPLIT, $0-84
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), R9
	MOVQ         a_base+24(FP), SI
	MOVQ         b_base+48(FP), DX
	VBROADCASTSS weight+72(FP), Y15
	XORQ         CX, CX
	VPXOR        Y10, Y10, Y10
	VPXOR        Y11, Y11, Y11
	MOVQ         R9, R10
	ANDQ         $31, R10
	JZ           sum32

sum8:
	SUM(VMOVUPS, 0, Y0, Y4, Y11)
	ADDQ $8, CX
	CMPQ CX, R10
	JB   sum8

sum32:
	CMPQ CX, R9
	JAE  sumEnd
	CMPB  stream+76(FP), $0
	JE    sum32Loop
	TESTQ $31, DI
	JZ    sum32Stream
	PCALIGN $32

sum32Loop:
	SUM(VMOVUPS, 0, Y0, Y4, Y11)
	SUM(VMOVUPS, 32, Y1, Y5, Y10)
	SUM(VMOVUPS, 64, Y2, Y6, Y11)
	SUM(VMOVUPS, 96, Y3, Y7, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   sum32Loop
	JMP  sumEnd
	PCALIGN $32

sum32Stream:
	SUM(VMOVNTPS, 0, Y0, Y4, Y11)
	SUM(VMOVNTPS, 32, Y1, Y5, Y10)
	SUM(VMOVNTPS, 64, Y2, Y6, Y11)
	SUM(VMOVNTPS, 96, Y3, Y7, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   sum32Stream
	SFENCE

sumEnd:
	TOPOF
	MOVL AX, ret+80(FP)
	VZEROUPPER
	RET

// BLEND is dst = scale*a + weight*b. Y14 scale, Y15 weight.
#define BLEND(off, s, t, top) \
	VMULPS  off(SI)(CX*4), Y14, s; \
	VMULPS  off(DX)(CX*4), Y15, t; \
	VADDPS  t, s, s; \
	VMOVUPS s, off(DI)(CX*4); \
	TOP(s, t, top)

// func blendAVX2(dst, a, b []float32, scale, weight float32) uint32
TEXT ·blendAVX2(SB), NOSPLIT, $0-84
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), R9
	MOVQ         a_base+24(FP), SI
	MOVQ         b_base+48(FP), DX
	VBROADCASTSS scale+72(FP), Y14
	VBROADCASTSS weight+76(FP), Y15
	XORQ         CX, CX
	VPXOR        Y10, Y10, Y10
	VPXOR        Y11, Y11, Y11
	MOVQ         R9, R10
	ANDQ         $31, R10
	JZ           blend32

blend8:
	BLEND(0, Y0, Y1, Y11)
	ADDQ $8, CX
	CMPQ CX, R10
	JB   blend8

blend32:
	CMPQ CX, R9
	JAE  blendEnd
	PCALIGN $32

blend32Loop:
	BLEND(0, Y0, Y1, Y11)
	BLEND(32, Y2, Y3, Y10)
	BLEND(64, Y4, Y5, Y11)
	BLEND(96, Y6, Y7, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   blend32Loop

blendEnd:
	TOPOF
	MOVL AX, ret+80(FP)
	VZEROUPPER
	RET

// GRAD leaves the parameters in w and k*grad + wd*w in g. Y12 wd, Y13 k.
#define GRAD(off, w, g, t) \
	VMOVUPS off(SI)(CX*4), w; \
	VMULPS  off(DX)(CX*4), Y13, g; \
	VMULPS  w, Y12, t; \
	VADDPS  t, g, g

// SGD is dst = w - lr*g. Y14 lr.
#define SGD(STORE, off, w, g, t, top) \
	GRAD(off, w, g, t); \
	VMULPS  g, Y14, g; \
	VSUBPS  g, w, w; \
	STORE   w, off(DI)(CX*4); \
	TOP(w, t, top)

// func sgdAVX2(dst, src, grad []float32, lr, k, wd float32, stream bool) uint32
TEXT ·sgdAVX2(SB), NOSPLIT, $0-92
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), R9
	MOVQ         src_base+24(FP), SI
	MOVQ         grad_base+48(FP), DX
	VBROADCASTSS lr+72(FP), Y14
	VBROADCASTSS k+76(FP), Y13
	VBROADCASTSS wd+80(FP), Y12
	XORQ         CX, CX
	VPXOR        Y10, Y10, Y10
	VPXOR        Y11, Y11, Y11
	MOVQ         R9, R10
	ANDQ         $31, R10
	JZ           sgd32

sgd8:
	SGD(VMOVUPS, 0, Y0, Y1, Y2, Y11)
	ADDQ $8, CX
	CMPQ CX, R10
	JB   sgd8

sgd32:
	CMPQ CX, R9
	JAE  sgdEnd
	CMPB  stream+84(FP), $0
	JE    sgd32Loop
	TESTQ $31, DI
	JZ    sgd32Stream
	PCALIGN $32

sgd32Loop:
	SGD(VMOVUPS, 0, Y0, Y1, Y2, Y11)
	SGD(VMOVUPS, 32, Y3, Y4, Y5, Y10)
	SGD(VMOVUPS, 64, Y6, Y7, Y8, Y11)
	SGD(VMOVUPS, 96, Y0, Y1, Y2, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   sgd32Loop
	JMP  sgdEnd
	PCALIGN $32

sgd32Stream:
	SGD(VMOVNTPS, 0, Y0, Y1, Y2, Y11)
	SGD(VMOVNTPS, 32, Y3, Y4, Y5, Y10)
	SGD(VMOVNTPS, 64, Y6, Y7, Y8, Y11)
	SGD(VMOVNTPS, 96, Y0, Y1, Y2, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   sgd32Stream
	SFENCE

sgdEnd:
	TOPOF
	MOVL AX, ret+88(FP)
	VZEROUPPER
	RET

// MOMENTUM is m = mu*m + g, dst = w - lr*m. Y14 lr, Y15 mu.
#define MOMENTUM(STORE, off, w, g, t, top) \
	GRAD(off, w, g, t); \
	VMULPS  off(R8)(CX*4), Y15, t; \
	VADDPS  g, t, t; \
	VMOVUPS t, off(R8)(CX*4); \
	VMULPS  t, Y14, t; \
	VSUBPS  t, w, w; \
	STORE   w, off(DI)(CX*4); \
	TOP(w, t, top)

// func momentumAVX2(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool) uint32
TEXT ·momentumAVX2(SB), NOSPLIT, $0-124
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), R9
	MOVQ         src_base+24(FP), SI
	MOVQ         grad_base+48(FP), DX
	MOVQ         m_base+72(FP), R8
	VBROADCASTSS lr+96(FP), Y14
	VBROADCASTSS k+100(FP), Y13
	VBROADCASTSS wd+104(FP), Y12
	VBROADCASTSS mu+108(FP), Y15
	XORQ         CX, CX
	VPXOR        Y10, Y10, Y10
	VPXOR        Y11, Y11, Y11
	MOVQ         R9, R10
	ANDQ         $31, R10
	JZ           momentum32

momentum8:
	MOMENTUM(VMOVUPS, 0, Y0, Y1, Y2, Y11)
	ADDQ $8, CX
	CMPQ CX, R10
	JB   momentum8

momentum32:
	CMPQ CX, R9
	JAE  momentumEnd
	CMPB  stream+112(FP), $0
	JE    momentum32Loop
	TESTQ $31, DI
	JZ    momentum32Stream
	PCALIGN $32

momentum32Loop:
	MOMENTUM(VMOVUPS, 0, Y0, Y1, Y2, Y11)
	MOMENTUM(VMOVUPS, 32, Y3, Y4, Y5, Y10)
	MOMENTUM(VMOVUPS, 64, Y6, Y7, Y8, Y11)
	MOMENTUM(VMOVUPS, 96, Y0, Y1, Y2, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   momentum32Loop
	JMP  momentumEnd
	PCALIGN $32

momentum32Stream:
	MOMENTUM(VMOVNTPS, 0, Y0, Y1, Y2, Y11)
	MOMENTUM(VMOVNTPS, 32, Y3, Y4, Y5, Y10)
	MOMENTUM(VMOVNTPS, 64, Y6, Y7, Y8, Y11)
	MOMENTUM(VMOVNTPS, 96, Y0, Y1, Y2, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   momentum32Stream
	SFENCE

momentumEnd:
	TOPOF
	MOVL AX, ret+120(FP)
	VZEROUPPER
	RET

// NESTEROV is m = mu*m + g, dst = w - lr*(g + mu*m). Y14 lr, Y15 mu.
#define NESTEROV(STORE, off, w, g, t, top) \
	GRAD(off, w, g, t); \
	VMULPS  off(R8)(CX*4), Y15, t; \
	VADDPS  g, t, t; \
	VMOVUPS t, off(R8)(CX*4); \
	VMULPS  t, Y15, t; \
	VADDPS  t, g, g; \
	VMULPS  g, Y14, g; \
	VSUBPS  g, w, w; \
	STORE   w, off(DI)(CX*4); \
	TOP(w, t, top)

// func nesterovAVX2(dst, src, grad, m []float32, lr, k, wd, mu float32, stream bool) uint32
TEXT ·nesterovAVX2(SB), NOSPLIT, $0-124
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), R9
	MOVQ         src_base+24(FP), SI
	MOVQ         grad_base+48(FP), DX
	MOVQ         m_base+72(FP), R8
	VBROADCASTSS lr+96(FP), Y14
	VBROADCASTSS k+100(FP), Y13
	VBROADCASTSS wd+104(FP), Y12
	VBROADCASTSS mu+108(FP), Y15
	XORQ         CX, CX
	VPXOR        Y10, Y10, Y10
	VPXOR        Y11, Y11, Y11
	MOVQ         R9, R10
	ANDQ         $31, R10
	JZ           nesterov32

nesterov8:
	NESTEROV(VMOVUPS, 0, Y0, Y1, Y2, Y11)
	ADDQ $8, CX
	CMPQ CX, R10
	JB   nesterov8

nesterov32:
	CMPQ CX, R9
	JAE  nesterovEnd
	CMPB  stream+112(FP), $0
	JE    nesterov32Loop
	TESTQ $31, DI
	JZ    nesterov32Stream
	PCALIGN $32

nesterov32Loop:
	NESTEROV(VMOVUPS, 0, Y0, Y1, Y2, Y11)
	NESTEROV(VMOVUPS, 32, Y3, Y4, Y5, Y10)
	NESTEROV(VMOVUPS, 64, Y6, Y7, Y8, Y11)
	NESTEROV(VMOVUPS, 96, Y0, Y1, Y2, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   nesterov32Loop
	JMP  nesterovEnd
	PCALIGN $32

nesterov32Stream:
	NESTEROV(VMOVNTPS, 0, Y0, Y1, Y2, Y11)
	NESTEROV(VMOVNTPS, 32, Y3, Y4, Y5, Y10)
	NESTEROV(VMOVNTPS, 64, Y6, Y7, Y8, Y11)
	NESTEROV(VMOVNTPS, 96, Y0, Y1, Y2, Y10)
	ADDQ $32, CX
	CMPQ CX, R9
	JB   nesterov32Stream
	SFENCE

nesterovEnd:
	TOPOF
	MOVL AX, ret+120(FP)
	VZEROUPPER
	RET

// func adamAVX2(dst, src, grad, m, v []float32, c *adamScalars) uint32
//
// Eight elements a turn, no more: the square root and the division take longer than all else. Y7 to Y15 are the scalars, in
// the order of adamScalars; Y0 is the parameters, Y1 the gradient, Y3 the first moment, Y5 the second.
TEXT ·adamAVX2(SB), NOSPLIT, $0-132
	MOVQ         dst_base+0(FP), DI
	MOVQ         dst_len+8(FP), R9
	MOVQ         src_base+24(FP), SI
	MOVQ         grad_base+48(FP), DX
	MOVQ         m_base+72(FP), R8
	MOVQ         v_base+96(FP), R11
	MOVQ         c+120(FP), R10
	VBROADCASTSS adamScalars_k(R10), Y7
	VBROADCASTSS adamScalars_wd(R10), Y8
	VBROADCASTSS adamScalars_b1(R10), Y9
	VBROADCASTSS adamScalars_c1(R10), Y10
	VBROADCASTSS adamScalars_b2(R10), Y11
	VBROADCASTSS adamScalars_c2(R10), Y12
	VBROADCASTSS adamScalars_rate(R10), Y13
	VBROADCASTSS adamScalars_root(R10), Y14
	VBROADCASTSS adamScalars_epsilon(R10), Y15
	XORQ         CX, CX
	VPXOR        Y4, Y4, Y4
	PCALIGN      $32

adam8:
	VMOVUPS (SI)(CX*4), Y0
	VMULPS  (DX)(CX*4), Y7, Y1
	VMULPS  Y0, Y8, Y2
	VADDPS  Y2, Y1, Y1          // the gradient
	VMULPS  (R8)(CX*4), Y9, Y3
	VMULPS  Y1, Y10, Y2
	VADDPS  Y2, Y3, Y3          // the first moment
	VMOVUPS Y3, (R8)(CX*4)
	VMULPS  (R11)(CX*4), Y11, Y5
	VMULPS  Y1, Y12, Y6
	VMULPS  Y1, Y6, Y6
	VADDPS  Y6, Y5, Y5          // the second
	VMOVUPS Y5, (R11)(CX*4)
	VSQRTPS Y5, Y5
	VMULPS  Y5, Y14, Y5
	VADDPS  Y15, Y5, Y5
	VMULPS  Y3, Y13, Y3
	VDIVPS  Y5, Y3, Y3
	VSUBPS  Y3, Y0, Y0
	VMOVUPS Y0, (DI)(CX*4)
	VPADDD  Y0, Y0, Y0
	VPMAXUD Y0, Y4, Y4          // the largest magnitude, as TOP keeps it
	ADDQ    $8, CX
	CMPQ    CX, R9
	JB      adam8
	VMOVDQA Y4, Y11
	VMOVDQA Y4, Y10
	TOPOF
	MOVL AX, ret+128(FP)
	VZEROUPPER
	RET

// SQUARES adds the squares of the four elements at off to s, as float64.
#define SQUARES(base, off, t, s) \
	VCVTPS2PD off(base)(CX*4), t; \
	VMULPD    t, t, t; \
	VADDPD    t, s, s

// func normsAVX2(push, params []float32, l *lanes)
//
// Adds the squares of both vectors to the lanes, as float64, and keeps the largest magnitude of push in each lane: bits
// without the sign, which have the order of the numbers. Y0 and Y1 are the lanes of push, four each, Y2 and Y3 those of params,
// Y4 the magnitudes; Y5 clears the sign. Element i counts in lane i mod 8, as in the twin.
TEXT ·normsAVX2(SB), NOSPLIT, $0-56
	MOVQ     push_base+0(FP), SI
	MOVQ     push_len+8(FP), R9
	MOVQ     params_base+24(FP), DX
	MOVQ     l+48(FP), DI
	VMOVUPD  lanes_push+0(DI), Y0
	VMOVUPD  lanes_push+32(DI), Y1
	VMOVUPD  lanes_params+0(DI), Y2
	VMOVUPD  lanes_params+32(DI), Y3
	VMOVDQU  lanes_top+0(DI), Y4
	VPCMPEQD Y5, Y5, Y5
	VPSRLD   $1, Y5, Y5
	XORQ     CX, CX
	PCALIGN  $32

norms8:
	SQUARES(SI, 0, Y6, Y0)
	SQUARES(SI, 16, Y7, Y1)
	SQUARES(DX, 0, Y8, Y2)
	SQUARES(DX, 16, Y9, Y3)
	VPAND    (SI)(CX*4), Y5, Y10
	VPMAXUD  Y10, Y4, Y4
	ADDQ     $8, CX
	CMPQ     CX, R9
	JB       norms8
	VMOVUPD  Y0, lanes_push+0(DI)
	VMOVUPD  Y1, lanes_push+32(DI)
	VMOVUPD  Y2, lanes_params+0(DI)
	VMOVUPD  Y3, lanes_params+32(DI)
	VMOVDQU  Y4, lanes_top+0(DI)
	VZEROUPPER
	RET
