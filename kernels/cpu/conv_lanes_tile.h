// The inner loops of forward and backward data where the lanes of a vector are filters. Weights are whole vectors, and
// values of the planes are broadcast. So no load crosses a cache line, and rows of any width fill the vectors.

// A block is two vectors of filters. A tile has COLUMNS_AT_ONCE columns of a row, whose sums fit the registers.
enum { BLOCK_LANES = 2 * LANES, COLUMNS_AT_ONCE = 14 };

// SUMS_AT_ONCE positions of a block use a third of the first-level cache, WEIGHTS_AT_ONCE floats of weights half of it.
enum { SUMS_AT_ONCE = 128, WEIGHTS_AT_ONCE = 6144 };

typedef struct {
	const float *src;     // padded planes of one image
	long planes, plane;   // how many, and floats from one to the next
	long taps;            // values of a window, in each plane
	const long *tap;      // where they lie, from the window's start
	const long *down;     // rows below the window's start, in a plane without zeros
	long stride, height;  // rows from one window to the next, and of a plane without zeros
	long row;             // floats of src from one output row to the next
	const float *weights; // packed: block of filters, plane, tap, filter of the block
	long filters, rows, cols;
	float *sums; // has space for sums_floats
	float *out;  // rows * cols positions of each filter
	float beta;
	ahead next;
} lanes_job;

// lanes_part is a part of the planes, with its weights in the order of j, and the taps that lie in the image. The other taps
// would only add zeros.
typedef struct {
	const float *weights;
	long plane, end, tap, end_tap;
} lanes_part;

// lanes_tile adds a part of the planes to the sums of X columns, a constant. The first part initializes the sums. Every output
// is summed plane by plane and tap by tap, whatever the tile, so that all tiles round alike.
static inline __attribute__((always_inline)) void
lanes_tile(const int X, const lanes_job *j, const lanes_part *part, const float *from, float *to)
{
	lanes16 sum[COLUMNS_AT_ONCE][2];
#pragma GCC unroll 16
	for (int i = 0; i < X; i++)
#pragma GCC unroll 2
		for (int v = 0; v < 2; v++)
			sum[i][v] = part->plane == 0 ? (lanes16){0} : *(const lanes16 *)(to + i * BLOCK_LANES + v * LANES);
	// Copies of the bounds, and moving pointers, keep addresses in general registers. One address that the compiler put into a
	// vector register cost a fifth of the speed.
	const long first = part->tap, last = part->end_tap, end = part->end;
	const float *weights = part->weights;
	from += part->plane * j->plane;
	for (long c = part->plane; c < end; c++, from += j->plane, weights += j->taps * BLOCK_LANES) {
		const float *weight = weights + first * BLOCK_LANES;
		for (long t = first; t < last; t++, weight += BLOCK_LANES) {
			const float *at = from + j->tap[t];
			const lanes16 w = *(const lanes16 *)weight, other = *(const lanes16 *)(weight + LANES);
#pragma GCC unroll 16
			for (int i = 0; i < X; i++) {
				const lanes16 in = at[i] - (lanes16){0};
				sum[i][0] += in * w;
				sum[i][1] += in * other;
			}
		}
	}
#pragma GCC unroll 16
	for (int i = 0; i < X; i++)
#pragma GCC unroll 2
		for (int v = 0; v < 2; v++)
			*(lanes16 *)(to + i * BLOCK_LANES + v * LANES) = sum[i][v];
}

typedef void lanes_function(const lanes_job *, const lanes_part *, const float *from, float *to);

#define LANES_TILE(X) \
	static void lanes_##X(const lanes_job *j, const lanes_part *part, const float *from, float *to) { lanes_tile(X, j, part, from, to); }

LANES_TILE(1) LANES_TILE(2) LANES_TILE(3) LANES_TILE(4) LANES_TILE(5) LANES_TILE(6) LANES_TILE(7)
LANES_TILE(8) LANES_TILE(9) LANES_TILE(10) LANES_TILE(11) LANES_TILE(12) LANES_TILE(13) LANES_TILE(14)

// lanes_tiles is indexed by columns - 1.
static lanes_function *const lanes_tiles[COLUMNS_AT_ONCE] = {
	lanes_1, lanes_2, lanes_3, lanes_4, lanes_5, lanes_6, lanes_7, lanes_8, lanes_9, lanes_10, lanes_11, lanes_12, lanes_13, lanes_14,
};

static long rows_at_once(long cols) { return cols > 0 && cols < SUMS_AT_ONCE ? SUMS_AT_ONCE / cols : 1; }

static long sums_floats(long cols) { return rows_at_once(cols) * cols * BLOCK_LANES; }

// outside reports whether a tap of the windows of a row lies above or below the image.
static int outside(const lanes_job *j, long y, long tap)
{
	const long at = y * j->stride + j->down[tap];
	return at < 0 || at >= j->height;
}

// lanes_row computes a part of the planes for one row.
static void lanes_row(const lanes_job *j, lanes_part part, long y, float *sums)
{
	const long tiles = ceil_div(j->cols, COLUMNS_AT_ONCE);
	for (part.tap = 0; part.tap < j->taps && outside(j, y, part.tap);)
		part.tap++;
	for (part.end_tap = j->taps; part.end_tap > part.tap && outside(j, y, part.end_tap - 1);)
		part.end_tap--;
	for (long t = 0; t < tiles; t++) {
		const long x = j->cols * t / tiles, n = j->cols * (t + 1) / tiles - x;
		lanes_tiles[n - 1](j, &part, j->src + y * j->row + x, sums + x * BLOCK_LANES);
	}
}

// put_filters transposes n positions of a block into n positions of each of its filters.
static void put_filters(float *out, long positions, const float *sums, long filters, long n, float beta)
{
	for (long f = 0; f < BLOCK_LANES && f < filters; f += 8, sums += 8, out += 8 * positions) {
		const long rows = filters - f < 8 ? filters - f : 8;
		long p = 0;
		for (; p + 8 <= n; p += 8) {
			__m256 a[8];
			turned8(a, sums + p * BLOCK_LANES, BLOCK_LANES);
#pragma GCC unroll 8
			for (int i = 0; i < 8; i++) {
				float *to = out + i * positions + p;
				if (i >= rows)
					break;
				if (beta != 0)
					a[i] = _mm256_fmadd_ps(_mm256_set1_ps(beta), _mm256_loadu_ps(to), a[i]);
				_mm256_storeu_ps(to, a[i]);
			}
		}
		for (; p < n; p++)
			for (long i = 0; i < rows; i++) {
				float *to = out + i * positions + p;
				*to = sums[p * BLOCK_LANES + i] + (beta != 0 ? beta * *to : 0);
			}
	}
}

// lanes_parts returns the number of parts of the planes. The weights of a part stay in the first-level cache while the rows
// are computed.
static long lanes_parts(const lanes_job *j) { return j->planes * j->taps * BLOCK_LANES / WEIGHTS_AT_ONCE + 1; }

// lanes_steps returns the least number of prefetches that lanes_image makes.
static long lanes_steps(const lanes_job *j) { return ceil_div(j->filters, BLOCK_LANES) * j->rows; }

// lanes_image computes an image, some rows at a time. The planes' values for these rows stay in a cache for all filters.
static void lanes_image(const lanes_job *j)
{
	const long parts = lanes_parts(j), rows = rows_at_once(j->cols), positions = j->rows * j->cols;
	ahead next = j->next;
	for (long start = 0; start < j->rows; start += rows) {
		const long stop = start + rows < j->rows ? start + rows : j->rows;
		const float *weights = j->weights;
		for (long f = 0; f < j->filters; f += BLOCK_LANES) {
			for (long p = 0; p < parts; p++) {
				lanes_part part = {.plane = j->planes * p / parts, .end = j->planes * (p + 1) / parts};
				part.weights = weights + part.plane * j->taps * BLOCK_LANES;
				for (long y = start; y < stop; y++) {
					lanes_row(j, part, y, j->sums + (y - start) * j->cols * BLOCK_LANES);
					fetch(&next);
				}
			}
			put_filters(j->out + f * positions + start * j->cols, positions, j->sums, j->filters - f, (stop - start) * j->cols, j->beta);
			weights += j->planes * j->taps * BLOCK_LANES;
		}
	}
}
