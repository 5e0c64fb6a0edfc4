// The convolutions of one instruction set with 16 lanes. Included once for each, with CONV_SET naming its table,
// FILTERS_AT_ONCE set, and its instructions on.
enum { LANES = 16 };
#include "conv_common.h"
#include "conv_planes.h"
#include "conv_transpose.h"
#include "conv_wide_tile.h"
#include "conv_spread.h"
#include "conv_wide_filter.h"

static spread forward_spread(const conv_shape *s)
{
	return (spread){
		.height = s->height, .width = s->width, .top = s->pad, .left = s->pad, .rows = s->height + 2 * s->pad,
		.stride = s->stride, .copies = s->kernel, .cols = s->out_width,
	};
}

static long forward_scratch(const conv_shape *s)
{
	const spread m = forward_spread(s);
	return s->channels * spread_floats(&m) + SLACK + CACHE_LINE;
}

static void pack_forward(const conv_shape *s, const float *w, float *packed)
{
	const long taps = s->kernel * s->kernel;
	long tap[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long t = 0; t < taps; t++)
		tap[t] = t;
	packed_taps(packed, w, s->filters, s->channels * taps, s->channels, taps, tap, taps);
}

static void forward(const conv_shape *s, const float *x, const float *packed, float *y, float beta, long first, long last, float *scratch)
{
	(void)beta;
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
		wide_image(&(wide_job){
			.src = scratch, .planes = s->channels, .plane = spread_floats(&m), .taps = s->kernel * s->kernel, .tap = tap,
			.weights = packed, .filters = s->filters, .positions = positions, .out = y + i * s->filters * positions,
		});
	}
}

// In the gradient of the images, the values whose row and column leave the same remainders by the
// stride form a phase. Each phase is a convolution of stride 1 of dY with some of the taps: value
// y = stride*i + a takes dY's row i + (a + pad - ky) / stride for each ky that makes it whole.

// backward_spread is of dY: zeros before it, so that no offset is negative, and behind. All phases have the size of the
// largest; what the others have more is dropped.
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

// phase_taps writes the taps of phase p as places in a filter and in dY, and returns their number.
static long phase_taps(const conv_shape *s, const spread *m, long p, long *weight, long *at)
{
	long taps = 0;
	for (long ky = 0; ky < s->kernel; ky++)
		for (long kx = 0; kx < s->kernel; kx++) {
			const long down = p / s->stride + s->pad - ky, right = p % s->stride + s->pad - kx;
			if (down % s->stride != 0 || right % s->stride != 0)
				continue;
			weight[taps] = ky * s->kernel + kx;
			at[taps++] = row_at(m, m->left + right / s->stride, m->top + down / s->stride);
		}
	return taps;
}

static long backward_data_scratch(const conv_shape *s)
{
	const spread m = backward_spread(s);
	return s->filters * spread_floats(&m) + SLACK + (s->stride > 1 ? s->stride * s->stride * phase_floats(s) : 0) + CACHE_LINE;
}

static void pack_backward(const conv_shape *s, const float *w, float *packed)
{
	const spread m = backward_spread(s);
	const long size = s->kernel * s->kernel;
	long weight[CONV_MAX_KERNEL * CONV_MAX_KERNEL], at[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long p = 0; p < s->stride * s->stride; p++) {
		const long taps = phase_taps(s, &m, p, weight, at);
		packed = packed_taps(packed, w, s->channels, size, s->filters, s->channels * size, weight, taps);
	}
}

static void backward_data(const conv_shape *s, const float *dy, const float *packed, float *dx, float beta, long first, long last, float *scratch)
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
			long weight[CONV_MAX_KERNEL * CONV_MAX_KERNEL], at[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
			wide_job j = {
				.src = scratch, .planes = s->filters, .plane = spread_floats(&m), .tap = at,
				.taps = phase_taps(s, &m, p, weight, at), .weights = weights, .filters = s->channels,
				.positions = ceil_div(s->height, s->stride) * m.cols, .out = phases + p * phase_floats(s),
			};
			weights += j.taps * s->filters * s->channels;
			if (s->stride == 1)
				j.out = image, j.beta = beta;
			wide_image(&j);
		}
		if (s->stride > 1)
			merge(s, phases, image, beta);
	}
}

static void pack_nothing(const conv_shape *s, const float *w, float *packed) { (void)s, (void)w, (void)packed; }

const conv_set CONV_SET = {
	.level = CONV_LEVEL,
	.scratch = {forward_scratch, backward_data_scratch, backward_filter_scratch},
	.pack = {pack_forward, pack_backward, pack_nothing},
	.run = {forward, backward_data, backward_filter},
};
