//go:build blas

#include "conv.h"
#include "vectors.h"

#include <stddef.h>

#ifdef VECTORS
extern const conv_set conv_avx2, conv_avx512;

static int wide(void)
{
#ifdef HALVES
	return 1;
#else
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq");
#endif
}

const conv_set *conv_sets(int i)
{
	const conv_set *sets[3] = {NULL};
	int n = 0;
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return NULL;
	if (wide())
		sets[n++] = &conv_avx512;
	sets[n++] = &conv_avx2;
	return i < n ? sets[i] : NULL;
}
#else
const conv_set *conv_sets(int i)
{
	(void)i;
	return NULL;
}
#endif

long conv_scratch(const conv_set *set, conv_kind kind, const conv_shape *s) { return set->scratch[kind](s); }

long conv_packed(const conv_set *set, conv_kind kind, const conv_shape *s) { return set->packed[kind](s); }

void conv_pack(const conv_set *set, conv_kind kind, const conv_shape *s, const float *w, float *packed)
{
	set->pack[kind](s, w, packed);
}

void conv_run(const conv_set *set, conv_kind kind, const conv_shape *s, const float *a, const float *b, float *c, float beta,
	      long first, long last, float *scratch)
{
	set->run[kind](s, a, b, c, beta, first, last, scratch);
}
