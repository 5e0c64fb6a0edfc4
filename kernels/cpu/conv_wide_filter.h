// The gradient of the filters with 16 lanes. The lanes are filters, not positions: every position where a window starts is
// one term. So no sum runs across lanes, and no width has a tail.

typedef struct {
	const float *src;  // padded planes of one image
	const float *grad; // one block of filters: position by position, V*LANES filters each
	long rows, cols;   // of positions
	long row, col;     // floats of src from one position to the next
} wide_filter_job;

// A run is K taps side by side in a row of the filter, whose addresses differ by constants. RUNS_AT_ONCE start addresses
// fit the other registers.
enum { RUNS_AT_ONCE = 8 };

// runs_at_once returns how many runs of k taps have their sums in registers, for one or two vectors of filters.
static long runs_at_once(long vectors, long k) { return k == 1 ? 8 : k == 3 ? 8 / vectors : 4 / vectors; }

// run_of returns the length of the runs of a kernel.
static long run_of(long kernel) { return kernel == 3 || kernel == 5 ? kernel : 1; }

// wide_filter_tile adds the terms of N runs of K taps to the sums, V vectors of filters each. N, K and V are constants.
static inline __attribute__((always_inline)) void
wide_filter_tile(const int V, const int K, const int N, const wide_filter_job *j, const long *start, float *sums)
{
	lanes16 sum[RUNS_AT_ONCE][5][2];
	const float *from[RUNS_AT_ONCE];
#pragma GCC unroll 8
	for (int n = 0; n < N; n++)
#pragma GCC unroll 8
		for (int k = 0; k < K; k++)
#pragma GCC unroll 2
			for (int v = 0; v < V; v++)
				sum[n][k][v] = (lanes16){0};
	const float *grad = j->grad;
	for (long y = 0; y < j->rows; y++) {
#pragma GCC unroll 8
		for (int n = 0; n < N; n++)
			from[n] = j->src + y * j->row + start[n];
		for (long x = 0; x < j->cols; x++, grad += V * LANES) {
			lanes16 g[2];
#pragma GCC unroll 2
			for (int v = 0; v < V; v++)
				g[v] = *(const unaligned16 *)(grad + v * LANES);
#pragma GCC unroll 8
			for (int n = 0; n < N; n++)
#pragma GCC unroll 8
				for (int k = 0; k < K; k++) {
					const float in = from[n][x * j->col + k];
#pragma GCC unroll 2
					for (int v = 0; v < V; v++)
						sum[n][k][v] += in * g[v];
				}
		}
	}
#pragma GCC unroll 8
	for (int n = 0; n < N; n++)
#pragma GCC unroll 8
		for (int k = 0; k < K; k++)
#pragma GCC unroll 2
			for (int v = 0; v < V; v++)
				*(unaligned16 *)(sums + ((n * K + k) * V + v) * LANES) += sum[n][k][v];
}

typedef void wide_filter_function(const wide_filter_job *, const long *start, float *sums);

#define WIDE_FILTER(V, K, N) \
	static void wide_filter_##V##_##K##_##N(const wide_filter_job *j, const long *start, float *sums) \
	{ \
		wide_filter_tile(V, K, N, j, start, sums); \
	}
#define WIDE_FILTERS_2(V, K) WIDE_FILTER(V, K, 1) WIDE_FILTER(V, K, 2)
#define WIDE_FILTERS_4(V, K) WIDE_FILTERS_2(V, K) WIDE_FILTER(V, K, 3) WIDE_FILTER(V, K, 4)
#define WIDE_FILTERS_8(V, K) WIDE_FILTERS_4(V, K) WIDE_FILTER(V, K, 5) WIDE_FILTER(V, K, 6) WIDE_FILTER(V, K, 7) WIDE_FILTER(V, K, 8)
#define NAMES_2(V, K) wide_filter_##V##_##K##_1, wide_filter_##V##_##K##_2
#define NAMES_4(V, K) NAMES_2(V, K), wide_filter_##V##_##K##_3, wide_filter_##V##_##K##_4
#define NAMES_8(V, K) NAMES_4(V, K), wide_filter_##V##_##K##_5, wide_filter_##V##_##K##_6, wide_filter_##V##_##K##_7, wide_filter_##V##_##K##_8

WIDE_FILTERS_8(1, 1) WIDE_FILTERS_8(2, 1) WIDE_FILTERS_8(1, 3) WIDE_FILTERS_4(2, 3) WIDE_FILTERS_4(1, 5) WIDE_FILTERS_2(2, 5)

// wide_filters is indexed by length of the runs / 2, vectors - 1, and runs - 1.
static wide_filter_function *const wide_filters[3][2][RUNS_AT_ONCE] = {
	{{NAMES_8(1, 1)}, {NAMES_8(2, 1)}},
	{{NAMES_8(1, 3)}, {NAMES_4(2, 3)}},
	{{NAMES_4(1, 5)}, {NAMES_2(2, 5)}},
};

// FLOATS_AT_ONCE floats of dY use a third of the first-level cache.
enum { FLOATS_AT_ONCE = 4096, BLOCK = 2 * LANES };

// block_vectors returns the number of vectors of the block of filters that starts at first.
static long block_vectors(const conv_shape *s, long first) { return s->filters - first > LANES ? 2 : 1; }

static long backward_filter_scratch(const conv_shape *s)
{
	const margins m = filter_margins(s);
	const long lanes = ceil_div(s->filters, LANES) * LANES, taps = s->channels * s->kernel * s->kernel;
	return s->channels * plane_floats(&m) + SLACK + lanes * (s->out_height * s->out_width + taps) +
	       taps * (long)(sizeof(long) / sizeof(float)) + 2 * CACHE_LINE;
}

// block_gradient adds the terms of one image to the sums of one block of filters.
static void block_gradient(const conv_shape *s, const margins *m, long vectors, const float *planes, const float *grad,
			   const long *start, long runs, float *sums)
{
	const long run = run_of(s->kernel), parts = ceil_div(runs, runs_at_once(vectors, run));
	const long rows = FLOATS_AT_ONCE / (vectors * LANES) / s->out_width, rows_at_once = rows > 0 ? rows : 1;
	for (long y = 0; y < s->out_height; y += rows_at_once) {
		const wide_filter_job j = {
			.src = planes + y * s->stride * row_floats(m), .grad = grad + y * s->out_width * vectors * LANES,
			.rows = s->out_height - y < rows_at_once ? s->out_height - y : rows_at_once, .cols = s->out_width,
			.row = s->stride * row_floats(m), .col = s->stride,
		};
		for (long p = 0; p < parts; p++) {
			const long first = runs * p / parts, n = runs * (p + 1) / parts - first;
			wide_filters[run / 2][vectors - 1][n - 1](&j, start + first, sums + first * run * vectors * LANES);
		}
	}
}

static void backward_filter(const conv_shape *s, const float *x, const float *dy, float *dw, float beta, long first, long last, float *scratch)
{
	(void)beta;
	const margins m = filter_margins(s);
	const long size = s->kernel * s->kernel, taps = (last - first) * size, positions = s->out_height * s->out_width;
	const long run = run_of(s->kernel), runs = taps / run;
	const long lanes = ceil_div(s->filters, LANES) * LANES, planes = (last - first) * plane_floats(&m) + SLACK;
	long *start = (long *)aligned(scratch);
	float *sums = aligned((float *)(start + taps)), *grad = sums + taps * lanes, *padded = grad + positions * lanes;
	for (long r = 0, t = 0; r < runs; r++, t += run)
		start[r] = t / size * plane_floats(&m) + t % size / s->kernel * row_floats(&m) + t % s->kernel;
	memset(padded, 0, planes * sizeof *padded);
	memset(sums, 0, taps * lanes * sizeof *sums);
	for (long i = 0; i < s->images; i++) {
		fill_planes(padded, x + (i * s->channels + first) * s->height * s->width, last - first, &m);
		for (long f = 0; f < s->filters; f += BLOCK) {
			const long vectors = block_vectors(s, f);
			transpose_filters(grad, vectors * LANES, dy + (i * s->filters + f) * positions, s->filters - f, positions);
			block_gradient(s, &m, vectors, padded, grad, start, runs, sums + f * taps);
		}
	}
	for (long f = 0; f < s->filters; f++) {
		const long block = f - f % BLOCK, step = block_vectors(s, block) * LANES;
		for (long t = 0; t < taps; t++)
			dw[(f * s->channels + first) * size + t] = sums[block * taps + t * step + f - block];
	}
}
