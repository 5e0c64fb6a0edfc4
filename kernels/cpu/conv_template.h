// The convolutions of one instruction set. This file is included once per set, with the set's instructions enabled, its table
// named by CONV_SET, and CONV_LEVEL and FILTERS_AT_ONCE set.
enum { LANES = 8 };
#include "conv_common.h"
#include "conv_planes.h"
#include "conv_transpose.h"

#include "conv_filter.h"
#include "conv_tile.h"

static long forward_scratch(const conv_shape *s)
{
	const margins m = forward_margins(s);
	return s->channels * plane_floats(&m) + SLACK + CACHE_LINE;
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
	const margins m = forward_margins(s);
	long tap[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long ky = 0; ky < s->kernel; ky++)
		for (long kx = 0; kx < s->kernel; kx++)
			tap[ky * s->kernel + kx] = ky * row_floats(&m) + kx % m.phases * m.part + kx / m.phases;
	scratch = aligned(scratch);
	memset(scratch, 0, (s->channels * plane_floats(&m) + SLACK) * sizeof *scratch);
	for (long i = first; i < last; i++) {
		fill_planes(scratch, x + i * s->channels * s->height * s->width, s->channels, &m);
		tile_image(&(tile_job){
			.src = scratch, .planes = s->channels, .plane = plane_floats(&m), .taps = s->kernel * s->kernel, .tap = tap,
			.row = s->stride * row_floats(&m), .weights = packed,
			.filters = s->filters, .rows = s->out_height, .cols = s->out_width,
			.out = y + i * s->filters * s->out_height * s->out_width,
			.out_plane = s->out_height * s->out_width, .out_row = s->out_width,
		});
	}
}

static long backward_data_scratch(const conv_shape *s)
{
	const margins m = backward_margins(s);
	return s->filters * plane_floats(&m) + SLACK + (s->stride > 1 ? s->stride * s->stride * phase_floats(s) : 0) + CACHE_LINE;
}

static void pack_backward(const conv_shape *s, const float *w, float *packed)
{
	const long size = s->kernel * s->kernel;
	long weight[CONV_MAX_KERNEL * CONV_MAX_KERNEL], down[CONV_MAX_KERNEL * CONV_MAX_KERNEL], right[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
	for (long p = 0; p < s->stride * s->stride; p++) {
		const long taps = phase_taps(s, p, weight, down, right);
		packed = packed_taps(packed, w, s->channels, size, s->filters, s->channels * size, weight, taps);
	}
}

static void backward_data(const conv_shape *s, const float *dy, const float *packed, float *dx, float beta, long first, long last, float *scratch)
{
	const margins m = backward_margins(s);
	scratch = aligned(scratch);
	float *phases = scratch + s->filters * plane_floats(&m) + SLACK;
	memset(scratch, 0, (phases - scratch) * sizeof *scratch);
	for (long i = first; i < last; i++) {
		float *image = dx + i * s->channels * s->height * s->width;
		fill_planes(scratch, dy + i * s->filters * s->out_height * s->out_width, s->filters, &m);
		const float *weights = packed;
		for (long p = 0; p < s->stride * s->stride; p++) {
			long weight[CONV_MAX_KERNEL * CONV_MAX_KERNEL], down[CONV_MAX_KERNEL * CONV_MAX_KERNEL];
			long at[CONV_MAX_KERNEL * CONV_MAX_KERNEL]; // columns at first, then offsets in a plane
			const long taps = phase_taps(s, p, weight, down, at);
			for (long t = 0; t < taps; t++)
				at[t] += (m.top + down[t]) * row_floats(&m) + m.left;
			const long a = p / s->stride, b = p % s->stride, cols = ceil_div(s->width, s->stride);
			tile_job j = {
				.src = scratch, .planes = s->filters, .plane = plane_floats(&m), .tap = at, .row = row_floats(&m),
				.taps = taps, .weights = weights, .filters = s->channels,
				.rows = ceil_div(s->height - a, s->stride), .cols = ceil_div(s->width - b, s->stride),
				.out = phases + p * phase_floats(s), .out_plane = ceil_div(s->height, s->stride) * cols, .out_row = cols,
			};
			weights += j.taps * s->filters * s->channels;
			if (s->stride == 1)
				j.out = image, j.beta = beta;
			tile_image(&j);
		}
		if (s->stride > 1)
			merge(s, phases, image, beta);
	}
}

// POSITIONS_AT_ONCE positions of 16 filters use half of the first-level cache.
enum { POSITIONS_AT_ONCE = 256, BLOCK = 2 * LANES };

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
			   const long *tap, long taps, float *sums)
{
	const long parts = ceil_div(taps, TAPS_AT_ONCE), rows = POSITIONS_AT_ONCE / s->out_width;
	const long rows_at_once = rows > 0 ? rows : 1;
	for (long y = 0; y < s->out_height; y += rows_at_once) {
		const filter_job j = {
			.src = planes + y * s->stride * row_floats(m), .grad = grad + y * s->out_width * vectors * LANES,
			.rows = s->out_height - y < rows_at_once ? s->out_height - y : rows_at_once, .cols = s->out_width,
			.row = s->stride * row_floats(m), .col = s->stride,
		};
		for (long p = 0; p < parts; p++) {
			const long first = taps * p / parts, n = taps * (p + 1) / parts - first;
			filter_tiles[n - 1][vectors - 1](&j, tap + first, sums + first * vectors * LANES);
		}
	}
}

static void backward_filter(const conv_shape *s, const float *x, const float *dy, float *dw, float beta, long first, long last, float *scratch)
{
	(void)beta;
	const margins m = filter_margins(s);
	const long size = s->kernel * s->kernel, taps = (last - first) * size, positions = s->out_height * s->out_width;
	const long lanes = ceil_div(s->filters, LANES) * LANES, planes = (last - first) * plane_floats(&m) + SLACK;
	long *tap = (long *)aligned(scratch);
	float *sums = aligned((float *)(tap + taps)), *grad = sums + taps * lanes, *padded = grad + positions * lanes;
	for (long t = 0; t < taps; t++)
		tap[t] = t / size * plane_floats(&m) + t % size / s->kernel * row_floats(&m) + t % s->kernel;
	memset(padded, 0, planes * sizeof *padded);
	memset(sums, 0, taps * lanes * sizeof *sums);
	for (long i = 0; i < s->images; i++) {
		fill_planes(padded, x + (i * s->channels + first) * s->height * s->width, last - first, &m);
		for (long f = 0; f < s->filters; f += BLOCK) {
			const long vectors = block_vectors(s, f);
			transpose_filters(grad, vectors * LANES, dy + (i * s->filters + f) * positions, s->filters - f, positions);
			block_gradient(s, &m, vectors, padded, grad, tap, taps, sums + f * taps);
		}
	}
	for (long f = 0; f < s->filters; f++) {
		const long block = f - f % BLOCK, step = block_vectors(s, block) * LANES;
		for (long t = 0; t < taps; t++)
			dw[(f * s->channels + first) * size + t] = sums[block * taps + t * step + f - block];
	}
}

static long no_weights(const conv_shape *s) { return (void)s, 0; }

static void pack_nothing(const conv_shape *s, const float *w, float *packed) { (void)s, (void)w, (void)packed; }

const conv_set CONV_SET = {
	.level = CONV_LEVEL,
	.scratch = {forward_scratch, backward_data_scratch, backward_filter_scratch},
	.packed = {all_weights, all_weights, no_weights},
	.pack = {pack_forward, pack_backward, pack_nothing},
	.run = {forward, backward_data, backward_filter},
};
