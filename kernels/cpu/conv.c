//go:build blas

#include "conv.h"
#include "vectors.h"

#include <stddef.h>

#ifdef VECTORS
extern const conv_set conv_avx2, conv_avx512;

const conv_set *conv_sets(int i)
{
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return NULL;
	if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl"))
		i++;
	return i == 0 ? &conv_avx512 : i == 1 ? &conv_avx2 : NULL;
}
#else
const conv_set *conv_sets(int i)
{
	(void)i;
	return NULL;
}
#endif

long conv_scratch(const conv_set *set, conv_kind kind, const conv_shape *s) { return set->scratch[kind](s); }

void conv_pack(const conv_set *set, conv_kind kind, const conv_shape *s, const float *w, float *packed)
{
	set->pack[kind](s, w, packed);
}

void conv_run(const conv_set *set, conv_kind kind, const conv_shape *s, const float *a, const float *b, float *c, float beta,
	      long first, long last, float *scratch)
{
	set->run[kind](s, a, b, c, beta, first, last, scratch);
}
