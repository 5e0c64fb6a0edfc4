// Forward and backward data with filters in the lanes.

// in_lanes reports whether this many filters fill enough lanes. With fewer filters, the lanes hold neighbouring positions.
static int in_lanes(long filters) { return ceil_div(filters, BLOCK_LANES) * BLOCK_LANES * 4 <= filters * 5; }

static long lanes_weights(long outs, long terms) { return ceil_div(outs, BLOCK_LANES) * BLOCK_LANES * terms; }

// pack_lanes writes the weights of some taps, block by block, as packed_taps does; lanes past the last filter are 0.
static float *pack_lanes(float *to, const float *w, long outs, long out_step, long ins, long in_step, const long *tap, long taps)
{
	for (long f = 0; f < outs; f += BLOCK_LANES)
		for (long i = 0; i < ins; i++)
			for (long t = 0; t < taps; t++)
				for (long o = f; o < f + BLOCK_LANES; o++)
					*to++ = o < outs ? w[o * out_step + i * in_step + tap[t]] : 0;
	return to;
}

static long lanes_forward_scratch(const conv_shape *s)
{
	const margins m = forward_margins(s);
	return sums_floats(s->out_width) + s->channels * plane_floats(&m) + CACHE_LINE;
}

static long lanes_forward_packed(const conv_shape *s)
{
	return lanes_weights(s->filters, s->channels * s->kernel * s->kernel) + CACHE_LINE;
}

static void lanes_pack_forward(const conv_shape *s, const float *w, float *packed)
{
	const long taps = s->kernel * s->kernel;
	long tap[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long t = 0; t < taps; t++)
		tap[t] = t;
	pack_lanes(aligned(packed), w, s->filters, s->channels * taps, s->channels, taps, tap, taps);
}

static void lanes_forward(const conv_shape *s, const float *x, const float *packed, float *y, long first, long last, float *scratch)
{
	const margins m = forward_margins(s);
	float *sums = aligned(scratch), *planes = sums + sums_floats(s->out_width);
	long tap[CONV_MAX_KERNEL * CONV_MAX_KERNEL], down[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long ky = 0; ky < s->kernel; ky++)
		for (long kx = 0; kx < s->kernel; kx++) {
			tap[ky * s->kernel + kx] = ky * row_floats(&m) + kx % m.phases * m.part + kx / m.phases;
			down[ky * s->kernel + kx] = ky - s->pad;
		}
	lanes_job j = {
		.src = planes, .planes = s->channels, .plane = plane_floats(&m), .taps = s->kernel * s->kernel, .tap = tap, .down = down,
		.stride = s->stride, .height = s->height, .row = s->stride * row_floats(&m), .weights = aligned((float *)packed),
		.filters = s->filters, .rows = s->out_height, .cols = s->out_width, .sums = sums,
	};
	memset(planes, 0, s->channels * plane_floats(&m) * sizeof *planes);
	for (long i = first; i < last; i++) {
		fill_planes(planes, x + i * s->channels * s->height * s->width, s->channels, &m);
		j.out = y + i * s->filters * s->out_height * s->out_width;
		j.next = i + 1 < last ? ahead_forward(s, x, y, i, lanes_steps(&j)) : (ahead){0};
		lanes_image(&j);
	}
}

static long lanes_backward_scratch(const conv_shape *s)
{
	const margins m = backward_margins(s);
	return sums_floats(ceil_div(s->width, s->stride)) + s->filters * plane_floats(&m) +
	       (s->stride > 1 ? s->stride * s->stride * phase_floats(s) : 0) + CACHE_LINE;
}

static long lanes_backward_packed(const conv_shape *s)
{
	return lanes_weights(s->channels, s->filters * s->kernel * s->kernel) + CACHE_LINE;
}

static void lanes_pack_backward(const conv_shape *s, const float *w, float *packed)
{
	const long size = s->kernel * s->kernel;
	long weight[CONV_MAX_KERNEL * CONV_MAX_KERNEL], down[CONV_MAX_KERNEL * CONV_MAX_KERNEL], right[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	packed = aligned(packed);
	for (long p = 0; p < s->stride * s->stride; p++) {
		const long taps = phase_taps(s, p, weight, down, right);
		packed = pack_lanes(packed, w, s->channels, size, s->filters, s->channels * size, weight, taps);
	}
}

static void lanes_backward(const conv_shape *s, const float *dy, const float *packed, float *dx, float beta, long first, long last, float *scratch)
{
	const margins m = backward_margins(s);
	const long rows = ceil_div(s->height, s->stride), cols = ceil_div(s->width, s->stride);
	float *sums = aligned(scratch), *planes = sums + sums_floats(cols), *phases = planes + s->filters * plane_floats(&m);
	memset(planes, 0, s->filters * plane_floats(&m) * sizeof *planes);
	for (long i = first; i < last; i++) {
		float *image = dx + i * s->channels * s->height * s->width;
		fill_planes(planes, dy + i * s->filters * s->out_height * s->out_width, s->filters, &m);
		const float *weights = aligned((float *)packed);
		for (long p = 0; p < s->stride * s->stride; p++) {
			long weight[CONV_MAX_KERNEL * CONV_MAX_KERNEL], down[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
			long at[CONV_MAX_KERNEL * CONV_MAX_KERNEL]; // columns at first, then offsets in a plane
			lanes_job j = {
				.src = planes, .planes = s->filters, .plane = plane_floats(&m), .taps = phase_taps(s, p, weight, down, at), .tap = at,
				.down = down, .stride = 1, .height = s->out_height, .row = row_floats(&m), .weights = weights, .filters = s->channels,
				.rows = rows, .cols = cols, .sums = sums, .out = phases + p * phase_floats(s),
			};
			for (long t = 0; t < j.taps; t++)
				at[t] += (m.top + down[t]) * row_floats(&m) + m.left;
			if (i + 1 < last)
				j.next = ahead_backward(s, dy, dx, i, p, lanes_steps(&j));
			weights += lanes_weights(s->channels, j.taps * s->filters);
			if (s->stride == 1)
				j.out = image, j.beta = beta;
			lanes_image(&j);
		}
		if (s->stride > 1)
			merge(s, phases, image, beta);
	}
}
