// The transposition of the gradient of the outputs, for the gradient of the filters.

// turned8 transposes a square of 8 by 8 whose rows lie step floats apart. It joins halves of rows while it loads them, which
// saves shuffles.
static inline void turned8(__m256 *to, const float *from, long step)
{
	__m256 a[8], b[8];
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		const float *upper = from + i * step, *lower = from + (i + 4) * step;
		a[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(upper)), _mm_loadu_ps(lower), 1);
		a[i + 4] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(upper + 4)), _mm_loadu_ps(lower + 4), 1);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 8; i += 2) {
		b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
		b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
	}
#pragma GCC unroll 2
	for (int i = 0; i < 8; i += 4) {
		to[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
		to[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
		to[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
		to[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
	}
}

// transpose8 transposes 8 positions of 8 filters. It writes the filters of position i, side by side, to `to + i * step`.
static inline void transpose8(float *to, long step, const float *from, long plane)
{
	__m256 a[8];
	turned8(a, from, plane);
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		_mm256_storeu_ps(to + i * step, a[i]);
}

// transpose_filters transposes n planes of size positions into positions of lanes filters. Lanes past n are 0.
static void transpose_filters(float *to, long lanes, const float *from, long n, long size)
{
	for (long f = 0; f < lanes; f += 8) {
		long p = 0;
		if (n - f >= 8)
			for (; p + 8 <= size; p += 8)
				transpose8(to + p * lanes + f, lanes, from + f * size + p, size);
		for (; p < size; p++)
			for (long i = f; i < f + 8; i++)
				to[p * lanes + i] = i < n ? from[i * size + p] : 0;
	}
}
