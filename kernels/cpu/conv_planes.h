// Padded copies of planes, and their sizes.

// margins is a copy of planes with zeros around them. The columns of a row are dealt into phases,
// column c at (c % phases) * part + c / phases, so that the columns that a stride visits lie side by side.
typedef struct {
	long height, width; // of a plane
	long top, left;     // zeros before
	long rows;          // of the copy
	long phases, part;  // a row has phases * part columns
} margins;

static long row_floats(const margins *m) { return m->phases * m->part; }
static long plane_floats(const margins *m) { return m->rows * row_floats(m); }

// fill_planes copies n planes into their places; the zeros around must be there.
static void fill_planes(float *to, const float *from, long n, const margins *m)
{
	const long row = row_floats(m);
	for (long p = 0; p < n; p++)
		for (long y = 0; y < m->height; y++) {
			float *at = to + (p * m->rows + m->top + y) * row;
			const float *in = from + (p * m->height + y) * m->width;
			if (m->phases == 1) {
				memcpy(at + m->left, in, m->width * sizeof *in);
				continue;
			}
			for (long x = 0; x < m->phases && x < m->width; x++) {
				const long c = m->left + x, count = ceil_div(m->width - x, m->phases);
				float *part = at + c % m->phases * m->part + c / m->phases;
				if (m->phases == 2) // a constant stride, for the compiler's sake
					for (long i = 0; i < count; i++)
						part[i] = in[x + 2 * i];
				else
					for (long i = 0; i < count; i++)
						part[i] = in[x + m->phases * i];
			}
		}
}

// filter_margins are those of the images for the gradient of the filters, where columns lie as they are.
static margins filter_margins(const conv_shape *s)
{
	return (margins){
		.height = s->height, .width = s->width, .top = s->pad, .left = s->pad, .rows = s->height + 2 * s->pad,
		.phases = 1, .part = s->width + 2 * s->pad,
	};
}
