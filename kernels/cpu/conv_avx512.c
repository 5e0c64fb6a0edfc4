//go:build blas

#include "conv.h"
#include "vectors.h"

#ifdef VECTORS
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

// 32 vector registers. Vectors stay at 8 floats: images are narrow.
#pragma GCC target("avx2,fma,avx512f,avx512vl")
#define FILTERS_AT_ONCE 6
#define CONV_SET conv_avx512
#define CONV_LEVEL 2
#include "conv_template.h"
#endif
