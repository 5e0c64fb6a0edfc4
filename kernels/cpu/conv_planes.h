// Padded copies of planes, and their sizes.

// margins describes a copy of planes with zeros around them. The columns of a row are split into phases:
// column c lies at (c % phases) * part + c / phases, so that the columns that a stride visits are adjacent.
typedef struct {
	long height, width; // of a plane
	long top, left;     // rows and columns of zeros before the plane
	long rows;          // of the copy
	long phases, part;  // a row has phases * part columns
} margins;

static long row_floats(const margins *m) { return m->phases * m->part; }
static long plane_floats(const margins *m) { return m->rows * row_floats(m); }

typedef float lanes8 __attribute__((vector_size(8 * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef float any_lanes __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));
typedef int index8 __attribute__((vector_size(8 * sizeof(int))));

// copy_row copies n floats. The last vector may copy some floats again, which is faster than a tail.
static void copy_row(float *to, const float *from, long n)
{
	if (n < 8) {
		for (long i = 0; i < n; i++)
			to[i] = from[i];
		return;
	}
	if (n < LANES) {
		const lanes8 a = *(const lanes8 *)from, b = *(const lanes8 *)(from + n - 8);
		*(lanes8 *)to = a;
		*(lanes8 *)(to + n - 8) = b;
		return;
	}
	for (long i = 0; i + LANES <= n; i += LANES)
		*(any_lanes *)(to + i) = *(const any_lanes *)(from + i);
	if (n % LANES != 0)
		*(any_lanes *)(to + n - LANES) = *(const any_lanes *)(from + n - LANES);
}

// deal_row copies n floats, the even ones to one address and the odd ones to another.
static inline void deal_row(float *even, float *odd, const float *from, long n)
{
	const index8 evens = {0, 2, 4, 6, 8, 10, 12, 14}, odds = {1, 3, 5, 7, 9, 11, 13, 15};
	long i = 0;
	for (; i + 16 <= n; i += 16) {
		const lanes8 a = *(const lanes8 *)(from + i), b = *(const lanes8 *)(from + i + 8);
		*(lanes8 *)(even + i / 2) = __builtin_shuffle(a, b, evens);
		*(lanes8 *)(odd + i / 2) = __builtin_shuffle(a, b, odds);
	}
	for (; i < n; i++)
		(i % 2 ? odd : even)[i / 2] = from[i];
}

// fill_planes copies n planes into their places. The zeros around them must be there already.
static void fill_planes(float *to, const float *from, long n, const margins *m)
{
	const long row = row_floats(m);
	for (long p = 0; p < n; p++)
		for (long y = 0; y < m->height; y++) {
			float *at = to + (p * m->rows + m->top + y) * row;
			const float *in = from + (p * m->height + y) * m->width;
			if (m->phases == 1) {
				copy_row(at + m->left, in, m->width);
				continue;
			}
			if (m->phases == 2) {
				const long even = m->left, odd = even + 1;
				deal_row(at + even % 2 * m->part + even / 2, at + odd % 2 * m->part + odd / 2, in, m->width);
				continue;
			}
			for (long x = 0; x < m->phases && x < m->width; x++) {
				const long c = m->left + x, count = ceil_div(m->width - x, m->phases);
				float *part = at + c % m->phases * m->part + c / m->phases;
				for (long i = 0; i < count; i++)
					part[i] = in[x + m->phases * i];
			}
		}
}

static margins forward_margins(const conv_shape *s)
{
	return (margins){
		.height = s->height, .width = s->width, .top = s->pad, .left = s->pad, .rows = s->height + 2 * s->pad,
		.phases = s->stride, .part = ceil_div(s->width + 2 * s->pad, s->stride),
	};
}

// backward_margins returns the margins of dY, with rows before it, so that no offset is negative, and after it. All phases
// have the size of the largest one; the additional values of the others are dropped.
static margins backward_margins(const conv_shape *s)
{
	const long before = s->kernel - 1 > s->pad ? (s->kernel - 1 - s->pad) / s->stride : 0, behind = (s->stride - 1 + s->pad) / s->stride;
	const long rows = ceil_div(s->height, s->stride) + behind, cols = ceil_div(s->width, s->stride) + behind;
	return (margins){
		.height = s->out_height, .width = s->out_width, .top = before, .left = before,
		.rows = before + (rows > s->out_height ? rows : s->out_height), .phases = 1,
		.part = before + (cols > s->out_width ? cols : s->out_width),
	};
}

// filter_margins returns the margins of the images for the gradient of the filters, with columns in their own order.
static margins filter_margins(const conv_shape *s)
{
	return (margins){
		.height = s->height, .width = s->width, .top = s->pad, .left = s->pad, .rows = s->height + 2 * s->pad,
		.phases = 1, .part = s->width + 2 * s->pad,
	};
}
