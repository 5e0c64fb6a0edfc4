//go:build blas

#include "conv.h"
#include "vectors.h"

#ifdef VECTORS
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

// There are 32 vector registers of 16 floats: 4 x 6 sums, and a vector of each operand. With HALVES, for tests, two registers
// of AVX2 replace one.
#ifdef HALVES
#pragma GCC target("avx2,fma")
#define CONV_LEVEL 1
#else
#pragma GCC target("avx2,fma,avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512")
#define CONV_LEVEL 2
#endif
#define FILTERS_AT_ONCE 6
#define CONV_SET conv_avx512
#include "conv_wide.h"
#endif
