// Forward and backward data with neighbouring positions in the lanes.

static spread forward_spread(const conv_shape *s)
{
	return (spread){
		.height = s->height, .width = s->width, .top = s->pad, .left = s->pad, .rows = s->height + 2 * s->pad,
		.stride = s->stride, .copies = s->kernel, .cols = s->out_width,
	};
}

static long positions_forward_scratch(const conv_shape *s)
{
	const spread m = forward_spread(s);
	return s->channels * spread_floats(&m) + SLACK + CACHE_LINE;
}

static void positions_pack_forward(const conv_shape *s, const float *w, float *packed)
{
	const long taps = s->kernel * s->kernel;
	long tap[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long t = 0; t < taps; t++)
		tap[t] = t;
	packed_taps(packed, w, s->filters, s->channels * taps, s->channels, taps, tap, taps);
}

static void positions_forward(const conv_shape *s, const float *x, const float *packed, float *y, long first, long last, float *scratch)
{
	const spread m = forward_spread(s);
	const long positions = s->out_height * s->out_width;
	long tap[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long ky = 0; ky < s->kernel; ky++)
		for (long kx = 0; kx < s->kernel; kx++)
			tap[ky * s->kernel + kx] = row_at(&m, kx, ky);
	scratch = aligned(scratch);
	memset(scratch, 0, (s->channels * spread_floats(&m) + SLACK) * sizeof *scratch);
	for (long i = first; i < last; i++) {
		spread_planes(scratch, x + i * s->channels * s->height * s->width, s->channels, &m);
		wide_job j = {
			.src = scratch, .planes = s->channels, .plane = spread_floats(&m), .taps = s->kernel * s->kernel, .tap = tap,
			.weights = packed, .filters = s->filters, .positions = positions, .out = y + i * s->filters * positions,
		};
		if (i + 1 < last)
			j.next = ahead_forward(s, x, y, i, wide_steps(&j));
		wide_image(&j);
	}
}

// backward_spread returns the spread of dY, with zeros before it, so that no offset is negative, and after it. All phases
// have the size of the largest one; the additional values of the others are dropped.
static spread backward_spread(const conv_shape *s)
{
	const long before = s->kernel - 1 > s->pad ? (s->kernel - 1 - s->pad) / s->stride : 0, behind = (s->stride - 1 + s->pad) / s->stride;
	const long rows = ceil_div(s->height, s->stride) + behind;
	return (spread){
		.height = s->out_height, .width = s->out_width, .top = before, .left = before,
		.rows = before + (rows > s->out_height ? rows : s->out_height),
		.stride = 1, .copies = before + behind + 1, .cols = ceil_div(s->width, s->stride),
	};
}

static long positions_backward_scratch(const conv_shape *s)
{
	const spread m = backward_spread(s);
	return s->filters * spread_floats(&m) + SLACK + (s->stride > 1 ? s->stride * s->stride * phase_floats(s) : 0) + CACHE_LINE;
}

static void positions_pack_backward(const conv_shape *s, const float *w, float *packed)
{
	const long size = s->kernel * s->kernel;
	long weight[CONV_MAX_KERNEL * CONV_MAX_KERNEL], down[CONV_MAX_KERNEL * CONV_MAX_KERNEL], right[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long p = 0; p < s->stride * s->stride; p++) {
		const long taps = phase_taps(s, p, weight, down, right);
		packed = packed_taps(packed, w, s->channels, size, s->filters, s->channels * size, weight, taps);
	}
}

static void positions_backward(const conv_shape *s, const float *dy, const float *packed, float *dx, float beta, long first, long last, float *scratch)
{
	const spread m = backward_spread(s);
	scratch = aligned(scratch);
	float *phases = scratch + s->filters * spread_floats(&m) + SLACK;
	memset(scratch, 0, (phases - scratch) * sizeof *scratch);
	for (long i = first; i < last; i++) {
		float *image = dx + i * s->channels * s->height * s->width;
		spread_planes(scratch, dy + i * s->filters * s->out_height * s->out_width, s->filters, &m);
		const float *weights = packed;
		for (long p = 0; p < s->stride * s->stride; p++) {
			long weight[CONV_MAX_KERNEL * CONV_MAX_KERNEL], down[CONV_MAX_KERNEL * CONV_MAX_KERNEL], right[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
			long at[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
			wide_job j = {
				.src = scratch, .planes = s->filters, .plane = spread_floats(&m), .tap = at,
				.taps = phase_taps(s, p, weight, down, right), .weights = weights, .filters = s->channels,
				.positions = ceil_div(s->height, s->stride) * m.cols, .out = phases + p * phase_floats(s),
			};
			for (long t = 0; t < j.taps; t++)
				at[t] = row_at(&m, m.left + right[t], m.top + down[t]);
			if (i + 1 < last)
				j.next = ahead_backward(s, dy, dx, i, p, wide_steps(&j));
			weights += j.taps * s->filters * s->channels;
			if (s->stride == 1)
				j.out = image, j.beta = beta;
			wide_image(&j);
		}
		if (s->stride > 1)
			merge(s, phases, image, beta);
	}
}
