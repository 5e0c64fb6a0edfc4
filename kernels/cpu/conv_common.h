// Code that the convolutions of all instruction sets share. It is included after FILTERS_AT_ONCE and LANES are set.

// slack is the number of floats after every copy. Vectors at the end of a row read past the row and drop these values.
enum { SLACK = 64 };

static long ceil_div(long a, long b) { return (a + b - 1) / b; }

static long filter_blocks(long filters) { return ceil_div(filters, FILTERS_AT_ONCE); }

// block_start makes the sizes of blocks differ by at most one, because a small last block would be slow.
static long block_start(long filters, long block) { return filters * block / filter_blocks(filters); }

// CACHE_LINE is the size of a cache line in floats. Scratch begins at the first whole line.
enum { CACHE_LINE = 16 };

static float *aligned(float *scratch) { return (float *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63); }

// packed_taps writes the weights of some taps, block by block, for `outs` filters over `ins`
// planes. The weights of neighbouring filters and planes lie out_step and in_step floats apart.
static float *packed_taps(float *to, const float *w, long outs, long out_step, long ins, long in_step, const long *tap, long taps)
{
	for (long b = 0; b < filter_blocks(outs); b++)
		for (long i = 0; i < ins; i++)
			for (long t = 0; t < taps; t++)
				for (long o = block_start(outs, b); o < block_start(outs, b + 1); o++)
					*to++ = w[o * out_step + i * in_step + tap[t]];
	return to;
}

static long all_weights(const conv_shape *s) { return s->filters * s->channels * s->kernel * s->kernel; }

// In the gradient of the images, the values whose row and column leave the same remainders by the
// stride form a phase. Each phase is a convolution of stride 1 of dY with some of the taps: value
// y = stride*i + a takes dY's row i + (a + pad - ky) / stride for each ky that makes it whole.

// phase_taps writes the taps of phase p and returns their number. A tap has an index in the filter, and a row and a column
// of dY relative to the value's own.
static long phase_taps(const conv_shape *s, long p, long *weight, long *down, long *right)
{
	long taps = 0;
	for (long ky = 0; ky < s->kernel; ky++)
		for (long kx = 0; kx < s->kernel; kx++) {
			const long y = p / s->stride + s->pad - ky, x = p % s->stride + s->pad - kx;
			if (y % s->stride != 0 || x % s->stride != 0)
				continue;
			weight[taps] = ky * s->kernel + kx;
			down[taps] = y / s->stride;
			right[taps++] = x / s->stride;
		}
	return taps;
}

static long phase_floats(const conv_shape *s)
{
	return s->channels * ceil_div(s->height, s->stride) * ceil_div(s->width, s->stride);
}

// merge interleaves the phases of one image into dx.
static void merge(const conv_shape *s, const float *phases, float *dx, float beta)
{
	const long rows = ceil_div(s->height, s->stride), cols = ceil_div(s->width, s->stride);
	for (long p = 0; p < s->channels; p++)
		for (long y = 0; y < s->height; y++, dx += s->width) {
			const float *row = phases + y % s->stride * s->stride * phase_floats(s) + (p * rows + y / s->stride) * cols;
			const float *even = row, *odd = row + phase_floats(s);
			if (s->stride == 2 && beta == 0) {
				for (long x = 0; x < s->width / 2; x++) {
					dx[2 * x] = even[x];
					dx[2 * x + 1] = odd[x];
				}
				if (s->width % 2)
					dx[s->width - 1] = even[cols - 1];
				continue;
			}
			for (long b = 0; b < s->stride; b++, row += phase_floats(s))
				for (long x = b, i = 0; x < s->width; x += s->stride, i++)
					dx[x] = (beta == 0 ? 0 : beta * dx[x]) + row[i];
		}
}
