#include "../gpu.cuh"

// The roundings are those of the Go twin, which explains them.

DEVICE unsigned to_half(unsigned b) {
	const unsigned sign = b >> 16 & 0x8000, m = b & 0x7fffffff;
	if (m > 0x7f800000)
		return sign | 0x7e00 | (m >> 13 & 0x3ff);
	if (m >= 0x47800000)
		return sign | 0x7c00;
	if (m >= 0x38800000)
		return sign | (m - (112u << 23) + 0xfff + (m >> 13 & 1)) >> 13;
	return sign | (__float_as_uint(__uint_as_float(m) + 0.5f) - __float_as_uint(0.5f));
}

DEVICE unsigned from_half(unsigned h) {
	const unsigned sign = (h & 0x8000) << 16, exponent = h >> 10 & 0x1f, m = h & 0x3ff;
	if (exponent == 0x1f)
		return sign | (m ? 0x7fc00000 : 0x7f800000) | m << 13;
	if (exponent == 0)
		return sign | __float_as_uint(m * 0x1p-24f);
	return sign | (exponent + 112) << 23 | m << 13;
}

DEVICE unsigned to_brain(unsigned b) {
	if ((b & 0x7fffffff) > 0x7f800000)
		return b >> 16 | 0x40;
	return (b + 0x7fff + (b >> 16 & 1)) >> 16;
}

DEVICE unsigned from_brain(unsigned h) { return h << 16; }

// A thread packs two elements into a word; after an odd number of them its upper half is 0.
#define PACK(NAME, ROUND)                                                                                              \
	extern "C" __global__ void NAME(const float *x, float *h, int n) {                                             \
		for (int i = first(); i < n / 2 + n % 2; i += stride()) {                                              \
			const unsigned low = ROUND(__float_as_uint(x[2 * i]));                                         \
			const unsigned high = 2 * i + 1 < n ? ROUND(__float_as_uint(x[2 * i + 1])) : 0;                \
			h[i] = __uint_as_float(low | high << 16);                                                      \
		}                                                                                                      \
	}

#define UNPACK(NAME, VALUE)                                                                                            \
	extern "C" __global__ void NAME(const float *h, float *x, int n) {                                             \
		for (int i = first(); i < n; i += stride())                                                            \
			x[i] = __uint_as_float(VALUE(__float_as_uint(h[i / 2]) >> 16 * (i % 2) & 0xffff));             \
	}

PACK(to_float16, to_half)
PACK(to_bfloat16, to_brain)
UNPACK(from_float16, from_half)
UNPACK(from_bfloat16, from_brain)
