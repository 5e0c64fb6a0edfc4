// The gradient of the outputs, turned for the gradient of the filters.

// transpose8 writes 8 positions of 8 filters, filters side by side, at to and every step floats.
static inline void transpose8(float *to, long step, const float *from, long plane)
{
	__m256 a[8], b[8];
#pragma GCC unroll 8
	for (int i = 0; i < 8; i++)
		a[i] = _mm256_loadu_ps(from + i * plane);
#pragma GCC unroll 4
	for (int i = 0; i < 8; i += 2) {
		b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
		b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
	}
#pragma GCC unroll 2
	for (int i = 0; i < 8; i += 4) {
		a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
		a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
		a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
		a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
	}
#pragma GCC unroll 4
	for (int i = 0; i < 4; i++) {
		_mm256_storeu_ps(to + i * step, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
		_mm256_storeu_ps(to + (i + 4) * step, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
	}
}

// transpose_filters turns n planes of size positions into positions of lanes filters; lanes past n are 0.
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
