//go:build blas

#include "conv.h"
#include "vectors.h"

#ifdef VECTORS
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

// There are 16 vector registers: 4 x 3 sums, and a vector of each operand.
#pragma GCC target("avx2,fma")
#define FILTERS_AT_ONCE 3
#define CONV_SET conv_avx2
#define CONV_LEVEL 1
#include "conv_template.h"
#endif
