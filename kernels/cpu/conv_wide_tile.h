// The inner loops of forward and backward data with 16 lanes.

// A vector of floats, aligned and unaligned. The compiler fuses products with additions, and uses two registers for a vector
// if registers have 8 lanes.
typedef float lanes16 __attribute__((vector_size(LANES * sizeof(float)), may_alias));
typedef float unaligned16 __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

typedef struct {
	const float *src;     // spread planes of one image
	long planes, plane;   // how many, and floats from one to the next
	long taps;            // values of a window, in each plane
	const long *tap;      // where they lie for the first position
	const float *weights; // packed: block of filters, plane, tap, filter of the block
	long filters, positions;
	float *out; // positions of each filter
	float beta;
	ahead next;
} wide_job;

// put_wide writes the first n lanes, or all lanes if there are fewer than n.
static inline void put_wide(float *to, const lanes16 *sum, long n, float beta)
{
	lanes16 v = *sum;
	if (n >= LANES) {
		if (beta != 0)
			v += beta * *(const unaligned16 *)to;
		*(unaligned16 *)to = v;
		return;
	}
	for (long i = 0; i < n; i++)
		to[i] = beta != 0 ? v[i] + beta * to[i] : v[i];
}

// wide_tile computes V vectors of positions for F filters, both constants. Every output is summed plane by plane and tap
// by tap, whatever the tile, so that all tiles round alike.
static inline __attribute__((always_inline)) void
wide_tile(const int F, const int V, const wide_job *j, const float *weights, long filter, long position)
{
	lanes16 sum[FILTERS_AT_ONCE][4];
#pragma GCC unroll 8
	for (int f = 0; f < F; f++)
#pragma GCC unroll 8
		for (int v = 0; v < V; v++)
			sum[f][v] = (lanes16){0};
	for (long c = 0; c < j->planes; c++) {
		const float *plane = j->src + c * j->plane + position;
		for (long t = 0; t < j->taps; t++) {
			const float *from = plane + j->tap[t];
			lanes16 w[FILTERS_AT_ONCE];
#pragma GCC unroll 8
			for (int f = 0; f < F; f++)
				w[f] = weights[f] - (lanes16){0};
#pragma GCC unroll 8
			for (int v = 0; v < V; v++) {
				const lanes16 in = *(const unaligned16 *)(from + v * LANES);
#pragma GCC unroll 8
				for (int f = 0; f < F; f++)
					sum[f][v] += w[f] * in;
			}
			weights += F;
		}
	}
#pragma GCC unroll 8
	for (int f = 0; f < F; f++)
#pragma GCC unroll 8
		for (int v = 0; v < V; v++) {
			const long at = position + v * LANES;
			put_wide(j->out + (filter + f) * j->positions + at, &sum[f][v], j->positions - at, j->beta);
		}
}

typedef void wide_function(const wide_job *, const float *weights, long filter, long position);

#define WIDE_TILE(F, V) \
	static void wide_##F##_##V(const wide_job *j, const float *weights, long filter, long position) \
	{ \
		wide_tile(F, V, j, weights, filter, position); \
	}
#define WIDE_TILES(F) WIDE_TILE(F, 1) WIDE_TILE(F, 2) WIDE_TILE(F, 3) WIDE_TILE(F, 4)
#define WIDE_ROW(F) {wide_##F##_1, wide_##F##_2, wide_##F##_3, wide_##F##_4}

WIDE_TILES(1) WIDE_TILES(2) WIDE_TILES(3) WIDE_TILES(4) WIDE_TILES(5) WIDE_TILES(6)

// wide_tiles is indexed by filters - 1 and vectors - 1.
static wide_function *const wide_tiles[FILTERS_AT_ONCE][4] = {
	WIDE_ROW(1), WIDE_ROW(2), WIDE_ROW(3), WIDE_ROW(4), WIDE_ROW(5), WIDE_ROW(6),
};

// wide_steps returns the number of tiles of an image.
static long wide_steps(const wide_job *j) { return filter_blocks(j->filters) * ceil_div(j->positions, 4 * LANES); }

// wide_image runs all tiles of an image. The positions of a tile take all filters before the next positions, because
// their part of the planes is in the first-level cache.
static void wide_image(const wide_job *j)
{
	const long vectors = ceil_div(j->positions, LANES), blocks = filter_blocks(j->filters);
	ahead next = j->next;
	for (long v = 0; v < vectors; v += 4) {
		const long width = vectors - v < 4 ? vectors - v : 4;
		const float *weights = j->weights;
		for (long b = 0; b < blocks; b++) {
			const long first = block_start(j->filters, b), n = block_start(j->filters, b + 1) - first;
			wide_tiles[n - 1][width - 1](j, weights, first, v * LANES);
			fetch(&next);
			weights += n * j->planes * j->taps;
		}
	}
}
