//go:build blas

#include "loops.h"
#include "vectors.h"

#ifdef VECTORS
#include <immintrin.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#pragma GCC target("avx2,fma")

// Loops marked ivdep may get one vector as two arguments: element i depends on element i only.

enum { LANES = 8 };

// wide is a sum in float64 with 8 lanes. For millions of terms, float32 would lose digits that an average needs.
typedef struct {
	__m256d low, high;
} wide;

static inline __m256d low(__m256 v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
static inline __m256d high(__m256 v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }

static inline double total(wide s)
{
	double lanes[4];
	_mm256_storeu_pd(lanes, _mm256_add_pd(s.low, s.high));
	return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

static double sum(const float *x, long n)
{
	wide s[2] = {{_mm256_setzero_pd(), _mm256_setzero_pd()}, {_mm256_setzero_pd(), _mm256_setzero_pd()}};
	long i = 0;
	for (; i + 2 * LANES <= n; i += 2 * LANES)
#pragma GCC unroll 2
		for (int k = 0; k < 2; k++) { // two independent sums
			const __m256 v = _mm256_loadu_ps(x + i + k * LANES);
			s[k].low = _mm256_add_pd(s[k].low, low(v));
			s[k].high = _mm256_add_pd(s[k].high, high(v));
		}
	double rest = total(s[0]) + total(s[1]);
	for (; i < n; i++)
		rest += x[i];
	return rest;
}

// deviations adds up x - near and its squares. If near is one of the values, the variance computed from the two sums does
// not cancel, and the variance of equal values is exactly 0.
static void deviations(const float *x, long n, float near, double *all, double *squares)
{
	const __m256 m = _mm256_set1_ps(near);
	wide s[2] = {{_mm256_setzero_pd(), _mm256_setzero_pd()}, {_mm256_setzero_pd(), _mm256_setzero_pd()}};
	wide q[2] = {s[0], s[0]};
	long i = 0;
	for (; i + 2 * LANES <= n; i += 2 * LANES)
#pragma GCC unroll 2
		for (int k = 0; k < 2; k++) {
			const __m256 v = _mm256_sub_ps(_mm256_loadu_ps(x + i + k * LANES), m);
			const __m256d a = low(v), b = high(v);
			s[k].low = _mm256_add_pd(s[k].low, a);
			s[k].high = _mm256_add_pd(s[k].high, b);
			q[k].low = _mm256_fmadd_pd(a, a, q[k].low);
			q[k].high = _mm256_fmadd_pd(b, b, q[k].high);
		}
	*all += total(s[0]) + total(s[1]);
	*squares += total(q[0]) + total(q[1]);
	for (; i < n; i++) {
		const double v = x[i] - near;
		*all += v;
		*squares += v * v;
	}
}

// norm holds the operands of batch_norm and batch_norm_eval. They compute one channel after the other, so that the second
// pass over a channel finds most of it in a cache.
typedef struct {
	long images, channels, positions, relu;
	const float *x, *r;
	float *y;
} norm;

static long plane(const norm *n, long image, long channel) { return (image * n->channels + channel) * n->positions; }

// normalize goes from the last image to the first, because the last images are still in the caches.
static void normalize(const norm *n, long c, float mean, float factor, float shift)
{
	for (long i = n->images - 1; i >= 0; i--) {
		const float *x = n->x + plane(n, i, c);
		float *y = n->y + plane(n, i, c);
		if (n->r != NULL) {
			const float *r = n->r + plane(n, i, c);
#pragma GCC ivdep
			for (long j = 0; j < n->positions; j++) {
				const float v = factor * (x[j] - mean) + shift + r[j];
				y[j] = n->relu && v < 0 ? 0 : v;
			}
			continue;
		}
#pragma GCC ivdep
		for (long j = 0; j < n->positions; j++) {
			const float v = factor * (x[j] - mean) + shift;
			y[j] = n->relu && v < 0 ? 0 : v;
		}
	}
}

static void batch_norm(const norm *n, const float *scale, const float *shift, float *saved, float epsilon, long first, long last)
{
	const double count = (double)n->images * n->positions;
	for (long c = first; c < last; c++) {
		const float any = n->x[plane(n, 0, c)], near = isfinite(any) ? any : 0; // inf - inf would turn an infinite mean into NaN
		double all = 0, squares = 0;
		for (long i = 0; i < n->images; i++)
			deviations(n->x + plane(n, i, c), n->positions, near, &all, &squares);
		const double beyond = all / count, variance = squares / count - beyond * beyond;
		saved[c] = near + beyond;
		saved[n->channels + c] = 1 / sqrt((variance > 0 ? variance : variance * 0) + epsilon); // NaN stays NaN
		normalize(n, c, saved[c], scale[c] * saved[n->channels + c], shift[c]);
	}
}

static void batch_norm_eval(const norm *n, const float *scale, const float *shift, const float *mean, const float *variance, float epsilon,
			    long first, long last)
{
	for (long c = first; c < last; c++) {
		const float inverse = 1 / sqrt((double)variance[c] + epsilon);
		normalize(n, c, mean[c], scale[c] * inverse, shift[c]);
	}
}

// cut_sums sets n values of dy to 0 where y is not above 0 (nowhere if y is null), and adds up dy and dy*(x - mean).
static void cut_sums(float *dy, const float *y, const float *x, long n, float mean, double *all, double *along)
{
	const __m256 m = _mm256_set1_ps(mean), zero = _mm256_setzero_ps();
	wide s[2] = {{_mm256_setzero_pd(), _mm256_setzero_pd()}, {_mm256_setzero_pd(), _mm256_setzero_pd()}};
	wide p[2] = {s[0], s[0]};
	long i = 0;
	for (; i + 2 * LANES <= n; i += 2 * LANES)
#pragma GCC unroll 2
		for (int k = 0; k < 2; k++) {
			const long at = i + k * LANES;
			__m256 g = _mm256_loadu_ps(dy + at);
			if (y != NULL) {
				g = _mm256_and_ps(g, _mm256_cmp_ps(_mm256_loadu_ps(y + at), zero, _CMP_GT_OQ));
				_mm256_storeu_ps(dy + at, g);
			}
			const __m256 d = _mm256_sub_ps(_mm256_loadu_ps(x + at), m);
			s[k].low = _mm256_add_pd(s[k].low, low(g));
			s[k].high = _mm256_add_pd(s[k].high, high(g));
			p[k].low = _mm256_fmadd_pd(low(g), low(d), p[k].low);
			p[k].high = _mm256_fmadd_pd(high(g), high(d), p[k].high);
		}
	*all += total(s[0]) + total(s[1]);
	*along += total(p[0]) + total(p[1]);
	for (; i < n; i++) {
		if (y != NULL && !(y[i] > 0))
			dy[i] = 0;
		*all += dy[i];
		*along += (double)dy[i] * (x[i] - mean);
	}
}

// batch_norm_grad takes X in n->x, Y in n->r and dX in n->y. dX may be X or dY.
static void batch_norm_grad(const norm *n, float *dy, const float *scale, const float *saved, float *dscale, float *dshift, long first, long last)
{
	const double count = (double)n->images * n->positions;
	for (long c = first; c < last; c++) {
		const float mean = saved[c], inverse = saved[n->channels + c];
		double all = 0, along = 0;
		for (long i = 0; i < n->images; i++) {
			const long at = plane(n, i, c);
			cut_sums(dy + at, n->relu ? n->r + at : NULL, n->x + at, n->positions, mean, &all, &along);
		}
		dshift[c] = all;
		dscale[c] = along * inverse;
		const float factor = scale[c] * inverse, offset = all / count, slope = along * inverse * inverse / count;
		for (long i = n->images - 1; i >= 0; i--) { // as in normalize
			const long at = plane(n, i, c);
			const float *g = dy + at, *x = n->x + at;
			float *dx = n->y + at;
#pragma GCC ivdep
			for (long j = 0; j < n->positions; j++)
				dx[j] = factor * (g[j] - offset - slope * (x[j] - mean));
		}
	}
}

static void bias_relu(float *x, const float *bias, long cols, long first, long last)
{
	for (long i = first; i < last; i++) {
		float *row = x + i * cols;
#pragma GCC ivdep
		for (long j = 0; j < cols; j++) {
			const float v = row[j] + bias[j];
			row[j] = v < 0 ? 0 : v;
		}
	}
}

static void relu_grad(float *dx, const float *y, long first, long last)
{
#pragma GCC ivdep
	for (long i = first; i < last; i++)
		dx[i] = y[i] <= 0 ? 0 : dx[i];
}

// bias_grad adds up rows in their order, with 32 columns at a time in registers.
static void bias_grad(const float *dy, float *db, long rows, long cols, long first, long last)
{
	long j = first;
	for (; j + 4 * LANES <= last; j += 4 * LANES) {
		__m256 s[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()};
		for (long i = 0; i < rows; i++)
#pragma GCC unroll 4
			for (int v = 0; v < 4; v++)
				s[v] = _mm256_add_ps(s[v], _mm256_loadu_ps(dy + i * cols + j + v * LANES));
#pragma GCC unroll 4
		for (int v = 0; v < 4; v++)
			_mm256_storeu_ps(db + j + v * LANES, s[v]);
	}
	if (j == last)
		return;
	memset(db + j, 0, (last - j) * sizeof *db);
	for (long i = 0; i < rows; i++)
#pragma GCC ivdep
		for (long k = j; k < last; k++)
			db[k] += dy[i * cols + k];
}

static void channel_bias_relu(float *x, const float *bias, long images, long channels, long positions, long first, long last)
{
	for (long i = 0; i < images; i++)
		for (long c = first; c < last; c++) {
			float *row = x + (i * channels + c) * positions;
			const float b = bias[c];
#pragma GCC ivdep
			for (long j = 0; j < positions; j++) {
				const float v = row[j] + b;
				row[j] = v < 0 ? 0 : v;
			}
		}
}

static void channel_bias_grad(const float *dy, float *db, long images, long channels, long positions, long first, long last)
{
	for (long c = first; c < last; c++) {
		double all = 0;
		for (long i = 0; i < images; i++)
			all += sum(dy + (i * channels + c) * positions, positions);
		db[c] = all;
	}
}

// The lanes of pooling. A shuffle splits 16 columns into even and odd ones, in the order 0 1 4 5 2 3 6 7. One permutation
// restores the order of the columns, and also reverses that. Vectors with masked tails avoid branches that no processor
// predicts.
static inline __m256 swapped(__m256 v)
{
	return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}

// lanes returns a mask with the first n lanes set.
static inline __m256i lanes(long n)
{
	const int on = n < LANES ? n : LANES;
	return _mm256_cmpgt_epi32(_mm256_set1_epi32(on), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// store writes the first n lanes. It also writes the other lanes if they lie before end, because later stores overwrite
// them with the right values. Masked stores are slow on some processors.
static inline void store(float *to, __m256 v, long n, const float *end)
{
	if (end - to >= LANES)
		_mm256_storeu_ps(to, v);
	else if (n > 0)
		_mm256_maskstore_ps(to, lanes(n), v);
}

// larger replaces best by v, value number k of its block, where v is above best or NaN.
static inline void larger(__m256 *best, __m256 *from, __m256 v, float k)
{
	const __m256 take = _mm256_or_ps(_mm256_cmp_ps(v, *best, _CMP_GT_OQ), _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
	*best = _mm256_blendv_ps(*best, v, take);
	*from = _mm256_blendv_ps(*from, _mm256_set1_ps(k), take);
}

static void max_pool(const float *x, float *y, float *which, long height, long width, long first, long last)
{
	const long rows = height / 2, cols = width / 2, size = rows * cols;
	for (long i = first * rows; i < last * rows; i++) {
		const float *top = x + (i / rows * height + i % rows * 2) * width, *bottom = top + width;
		for (long j = 0; j < cols; j += LANES) {
			const __m256i left = lanes(2 * (cols - j)), right = lanes(2 * (cols - j) - LANES);
			const __m256 a = _mm256_maskload_ps(top + 2 * j, left), b = _mm256_maskload_ps(top + 2 * j + LANES, right);
			const __m256 c = _mm256_maskload_ps(bottom + 2 * j, left), d = _mm256_maskload_ps(bottom + 2 * j + LANES, right);
			__m256 best = _mm256_shuffle_ps(a, b, 0x88), from = _mm256_setzero_ps();
			larger(&best, &from, _mm256_shuffle_ps(a, b, 0xdd), 1);
			larger(&best, &from, _mm256_shuffle_ps(c, d, 0x88), 2);
			larger(&best, &from, _mm256_shuffle_ps(c, d, 0xdd), 3);
			store(y + i * cols + j, swapped(best), cols - j, y + last * size);
			store(which + i * cols + j, swapped(from), cols - j, which + last * size);
		}
	}
}

// spread writes a row of dX. In each pair of columns, the even one gets g if from is k, the odd one gets g if from is k + 1,
// and all others get 0.
static inline void spread(float *to, long width, const float *g, const float *from, float k, const float *end)
{
	const long cols = width / 2;
	for (long j = 0; j < cols; j += LANES) {
		const __m256i in = lanes(cols - j);
		const __m256 value = swapped(_mm256_maskload_ps(g + j, in)), at = swapped(_mm256_maskload_ps(from + j, in));
		const __m256 even = _mm256_and_ps(value, _mm256_cmp_ps(at, _mm256_set1_ps(k), _CMP_EQ_OQ));
		const __m256 odd = _mm256_and_ps(value, _mm256_cmp_ps(at, _mm256_set1_ps(k + 1), _CMP_EQ_OQ));
		store(to + 2 * j, _mm256_unpacklo_ps(even, odd), 2 * (cols - j), end);
		store(to + 2 * j + LANES, _mm256_unpackhi_ps(even, odd), 2 * (cols - j) - LANES, end);
	}
	if (width % 2)
		to[width - 1] = 0;
}

static void max_pool_grad(const float *dy, const float *which, float *dx, long height, long width, long first, long last)
{
	const long rows = height / 2, cols = width / 2;
	const float *end = dx + last * height * width;
	for (long p = first; p < last; p++) {
		float *image = dx + p * height * width;
		for (long i = 0; i < rows; i++) {
			const long at = (p * rows + i) * cols;
			spread(image + 2 * i * width, width, dy + at, which + at, 0, end);
			spread(image + (2 * i + 1) * width, width, dy + at, which + at, 2, end);
		}
		if (height % 2)
			memset(image + (height - 1) * width, 0, width * sizeof *image);
	}
}

void loop_run(loop k, long n0, long n1, long n2, long n3, float f, float *v0, float *v1, float *v2, float *v3, float *v4, float *v5,
	      float *v6, float *v7, long first, long last)
{
	const norm n = {.images = n0, .channels = n1, .positions = n2, .relu = n3};
	norm o = n;
	switch (k) {
	case LOOP_BATCH_NORM:
		o.x = v0, o.y = v3, o.r = v5;
		batch_norm(&o, v1, v2, v4, f, first, last);
		return;
	case LOOP_BATCH_NORM_EVAL:
		o.x = v0, o.y = v5, o.r = v6;
		batch_norm_eval(&o, v1, v2, v3, v4, f, first, last);
		return;
	case LOOP_BATCH_NORM_GRAD:
		o.x = v2, o.r = v1, o.y = v7;
		batch_norm_grad(&o, v0, v3, v4, v5, v6, first, last);
		return;
	case LOOP_BIAS_RELU:
		bias_relu(v0, v1, n1, first, last);
		return;
	case LOOP_RELU_GRAD:
		relu_grad(v0, v1, first, last);
		return;
	case LOOP_BIAS_GRAD:
		bias_grad(v0, v1, n0, n1, first, last);
		return;
	case LOOP_CHANNEL_BIAS_RELU:
		channel_bias_relu(v0, v1, n0, n1, n2, first, last);
		return;
	case LOOP_CHANNEL_BIAS_GRAD:
		channel_bias_grad(v0, v1, n0, n1, n2, first, last);
		return;
	case LOOP_MAX_POOL:
		max_pool(v0, v1, v2, n1, n2, first, last);
		return;
	case LOOP_MAX_POOL_GRAD:
		max_pool_grad(v0, v1, v2, n1, n2, first, last);
		return;
	}
}
#else
#include <stdlib.h>

// No caller reaches this function if conv_sets has no set.
void loop_run(loop k, long n0, long n1, long n2, long n3, float f, float *v0, float *v1, float *v2, float *v3, float *v4, float *v5,
	      float *v6, float *v7, long first, long last)
{
	abort();
}
#endif
