// Spread planes: there is a copy of the planes for each column of a window. In a copy, the values that one tap reads for
// the outputs of an image lie one after the other, row after row without gaps. A vector then holds neighbouring outputs of
// several rows if it must. So images of any width fill it, and only the last vector of an image is incomplete.

typedef struct {
	long height, width; // of a plane
	long top, left;     // rows and columns of zeros before the plane
	long rows;          // including zeros
	long stride;        // of windows
	long copies, cols;  // copy k has column stride*x + k of the padded plane at x, for x below cols
} spread;

// Rows with the same remainder by the stride are adjacent.
static long spread_rows(const spread *m) { return ceil_div(m->rows, m->stride); }

// row_at returns the offset of a row of a copy in a spread plane.
static long row_at(const spread *m, long copy, long row)
{
	return ((copy * m->stride + row % m->stride) * spread_rows(m) + row / m->stride) * m->cols;
}

static long spread_floats(const spread *m) { return m->copies * m->stride * spread_rows(m) * m->cols; }

// copy_images copies columns lo to hi-1 of copy k of n planes, for windows of stride 1.
static void copy_images(float *to, const float *from, long n, const spread *m, long k, long lo, long hi)
{
	const long shift = k - m->left;
	for (long p = 0; p < n; p++, from += m->height * m->width) {
		float *rows = to + p * spread_floats(m) + row_at(m, k, m->top);
		if (m->cols != m->width) {
			for (long y = 0; y < m->height; y++)
				copy_row(rows + y * m->cols + lo, from + y * m->width + lo + shift, hi - lo);
			continue;
		}
		// Rows follow one another in both, so a shift also copies values of the next row; these are then set to 0.
		copy_row(rows + lo, from + lo + shift, (m->height - 1) * m->width + hi - lo);
		for (long y = 0; y < m->height; y++, rows += m->cols) {
			for (long x = 0; x < lo; x++)
				rows[x] = 0;
			for (long x = hi; x < m->cols; x++)
				rows[x] = 0;
		}
	}
}

// copy_strided does the same for other strides.
static void copy_strided(float *to, const float *from, long n, const spread *m, long k, long lo, long hi)
{
	from += m->stride * lo + k - m->left;
	for (long p = 0; p < n; p++, to += spread_floats(m)) {
		long phase = m->top % m->stride, row = m->top / m->stride;
		for (long y = 0; y < m->height; y++, from += m->width) {
			float *at = to + ((k * m->stride + phase) * spread_rows(m) + row) * m->cols;
			if (m->stride == 2) // a constant stride compiles to faster code
				for (long x = lo; x < hi; x++)
					at[x] = from[2 * (x - lo)];
			else
				for (long x = lo; x < hi; x++)
					at[x] = from[m->stride * (x - lo)];
			if (++phase == m->stride)
				phase = 0, row++;
		}
	}
}

// spread_planes copies n planes into their places. The zeros around them must be there already.
static void spread_planes(float *to, const float *from, long n, const spread *m)
{
	for (long k = 0; k < m->copies; k++) {
		const long before = m->left - k, behind = ceil_div(m->width + before, m->stride);
		const long lo = before > 0 ? ceil_div(before, m->stride) : 0, hi = behind < m->cols ? behind : m->cols;
		if (lo < hi)
			(m->stride == 1 ? copy_images : copy_strided)(to, from, n, m, k, lo, hi);
	}
}
