// The inner loops of forward and backward data. This file is included with AVX2 and FMA enabled, and with
// FILTERS_AT_ONCE set so that the registers hold the sums, 4 vectors for each filter.

typedef struct {
	const float *src;     // padded planes of one image
	long planes, plane;   // how many, and floats from one to the next
	long taps;            // values of a window, in each plane
	const long *tap;      // where they lie, from the window's start
	long row;             // floats of src from one output row to the next
	const float *weights; // packed: block of filters, plane, tap, filter of the block
	long filters, rows, cols;
	float *out;
	long out_plane, out_row;
	float beta;
} tile_job;

// put writes a vector of outputs to a row with cols remaining columns. It masks tails, because the values past
// them belong to another row.
static inline void put(float *to, __m256 v, long cols, float beta)
{
	if (cols >= LANES) {
		if (beta != 0)
			v = _mm256_fmadd_ps(_mm256_set1_ps(beta), _mm256_loadu_ps(to), v);
		_mm256_storeu_ps(to, v);
	} else if (cols > 0) {
		__m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)cols), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
		if (beta != 0)
			v = _mm256_fmadd_ps(_mm256_set1_ps(beta), _mm256_maskload_ps(to, mask), v);
		_mm256_maskstore_ps(to, mask, v);
	}
}

// tile computes R rows of V vectors for F filters, all constants. Rows past the last are copies of
// it and are not written, so they need no loop of their own. Every output is summed plane by plane
// and tap by tap, whatever the tile, so that all tiles round alike.
static inline __attribute__((always_inline)) void
tile(const int F, const int R, const int V, const tile_job *j, const float *weights, long filter, long y, long x)
{
	__m256 sum[FILTERS_AT_ONCE][4][4];
	const float *from[4];
#pragma GCC unroll 8
	for (int r = 0; r < R; r++) {
		from[r] = j->src + (y + r < j->rows ? y + r : j->rows - 1) * j->row + x;
#pragma GCC unroll 8
		for (int v = 0; v < V; v++)
#pragma GCC unroll 8
			for (int f = 0; f < F; f++)
				sum[f][r][v] = _mm256_setzero_ps();
	}
	for (long c = 0; c < j->planes; c++) {
		for (long t = 0; t < j->taps; t++) {
			const long at = c * j->plane + j->tap[t];
			__m256 w[FILTERS_AT_ONCE];
#pragma GCC unroll 8
			for (int f = 0; f < F; f++)
				w[f] = _mm256_broadcast_ss(weights + f);
			weights += F;
#pragma GCC unroll 8
			for (int r = 0; r < R; r++)
#pragma GCC unroll 8
				for (int v = 0; v < V; v++) {
					__m256 in = _mm256_loadu_ps(from[r] + at + v * LANES);
#pragma GCC unroll 8
					for (int f = 0; f < F; f++)
						sum[f][r][v] = _mm256_fmadd_ps(w[f], in, sum[f][r][v]);
				}
		}
	}
#pragma GCC unroll 8
	for (int f = 0; f < F; f++)
#pragma GCC unroll 8
		for (int r = 0; r < R; r++) {
			float *to = j->out + (filter + f) * j->out_plane + (y + r) * j->out_row + x;
#pragma GCC unroll 8
			for (int v = 0; v < V; v++)
				put(to + v * LANES, sum[f][r][v], y + r < j->rows ? j->cols - x - v * LANES : 0, j->beta);
		}
}

typedef void tile_function(const tile_job *, const float *weights, long filter, long y, long x);

#define TILE(F, R, V) \
	static void tile_##F##_##R##x##V(const tile_job *j, const float *weights, long filter, long y, long x) \
	{ \
		tile(F, R, V, j, weights, filter, y, x); \
	}
#define TILES(F) TILE(F, 4, 1) TILE(F, 2, 2) TILE(F, 1, 3) TILE(F, 1, 4)
#define TILE_ROW(F) {tile_##F##_4x1, tile_##F##_2x2, tile_##F##_1x3, tile_##F##_1x4}

TILES(1) TILES(2) TILES(3)

// tiles is indexed by filters - 1 and vectors - 1.
static tile_function *const tiles[FILTERS_AT_ONCE][4] = {
	TILE_ROW(1), TILE_ROW(2), TILE_ROW(3),
};

// tile_image runs all tiles of an image. A row of tiles takes all filters before the next, because
// its part of the planes fits the first-level cache.
static void tile_image(const tile_job *j)
{
	const long vectors = (j->cols + LANES - 1) / LANES;
	static const long rows_at_once[] = {4, 2, 1, 1};
	for (long v = 0; v < vectors; v += 4) {
		const long shape = (vectors - v < 4 ? vectors - v : 4) - 1;
		for (long y = 0; y < j->rows; y += rows_at_once[shape]) {
			const float *weights = j->weights;
			const long blocks = filter_blocks(j->filters);
			for (long b = 0; b < blocks; b++) {
				const long first = block_start(j->filters, b), n = block_start(j->filters, b + 1) - first;
				tiles[n - 1][shape](j, weights, first, y, v * LANES);
				weights += n * j->planes * j->taps;
			}
		}
	}
}
