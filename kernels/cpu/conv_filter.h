// The inner loops of the gradient of the filters. A vector holds filters, not positions: every
// position where a window starts is one term. So no sum runs across lanes, and no width has a tail.

// TAPS_AT_ONCE sums of two vectors fit 16 registers.
enum { TAPS_AT_ONCE = 6 };

typedef struct {
	const float *src;  // padded planes of one image
	const float *grad; // one block of filters: position by position, V*LANES filters each
	long rows, cols;   // of positions
	long row, col;     // floats of src from one position to the next
} filter_job;

// filter_tile adds the terms of N taps to the sums, V vectors of filters each. N and V are constants.
static inline __attribute__((always_inline)) void
filter_tile(const int V, const int N, const filter_job *j, const long *tap, float *sums)
{
	__m256 sum[TAPS_AT_ONCE][2];
	const float *from[TAPS_AT_ONCE];
#pragma GCC unroll 16
	for (int n = 0; n < N; n++)
#pragma GCC unroll 2
		for (int v = 0; v < V; v++)
			sum[n][v] = _mm256_setzero_ps();
	const float *grad = j->grad;
	for (long y = 0; y < j->rows; y++) {
#pragma GCC unroll 16
		for (int n = 0; n < N; n++)
			from[n] = j->src + y * j->row + tap[n];
		for (long x = 0; x < j->cols; x++, grad += V * LANES) {
			__m256 g[2];
#pragma GCC unroll 2
			for (int v = 0; v < V; v++)
				g[v] = _mm256_loadu_ps(grad + v * LANES);
#pragma GCC unroll 16
			for (int n = 0; n < N; n++) {
				__m256 in = _mm256_broadcast_ss(from[n] + x * j->col);
#pragma GCC unroll 2
				for (int v = 0; v < V; v++)
					sum[n][v] = _mm256_fmadd_ps(in, g[v], sum[n][v]);
			}
		}
	}
#pragma GCC unroll 16
	for (int n = 0; n < N; n++)
#pragma GCC unroll 2
		for (int v = 0; v < V; v++) {
			float *to = sums + (n * V + v) * LANES;
			_mm256_storeu_ps(to, _mm256_add_ps(_mm256_loadu_ps(to), sum[n][v]));
		}
}

typedef void filter_function(const filter_job *, const long *tap, float *sums);

#define FILTER_TILE(V, N) \
	static void filter_##V##_##N(const filter_job *j, const long *tap, float *sums) \
	{ \
		filter_tile(V, N, j, tap, sums); \
	}
#define FILTER_TILES(N) FILTER_TILE(1, N) FILTER_TILE(2, N)
#define FILTER_ROW(N) {filter_1_##N, filter_2_##N}

FILTER_TILES(1) FILTER_TILES(2) FILTER_TILES(3) FILTER_TILES(4) FILTER_TILES(5) FILTER_TILES(6)

// filter_tiles is indexed by taps - 1 and vectors - 1.
static filter_function *const filter_tiles[TAPS_AT_ONCE][2] = {
	FILTER_ROW(1), FILTER_ROW(2), FILTER_ROW(3), FILTER_ROW(4), FILTER_ROW(5), FILTER_ROW(6),
};
