// The convolutions of one instruction set with 16 lanes. This file is included once per set, with the set's instructions
// enabled, its table named by CONV_SET, and FILTERS_AT_ONCE set.
enum { LANES = 16 };
#include "conv_common.h"
#include "conv_planes.h"
#include "conv_transpose.h"
#include "conv_ahead.h"
#include "conv_wide_tile.h"
#include "conv_spread.h"
#include "conv_positions.h"
#include "conv_lanes_tile.h"
#include "conv_lanes.h"
#include "conv_wide_filter.h"

static long forward_scratch(const conv_shape *s)
{
	return in_lanes(s->filters) ? lanes_forward_scratch(s) : positions_forward_scratch(s);
}

static long backward_data_scratch(const conv_shape *s)
{
	return in_lanes(s->channels) ? lanes_backward_scratch(s) : positions_backward_scratch(s);
}

static long forward_packed(const conv_shape *s) { return in_lanes(s->filters) ? lanes_forward_packed(s) : all_weights(s); }

static long backward_data_packed(const conv_shape *s) { return in_lanes(s->channels) ? lanes_backward_packed(s) : all_weights(s); }

static void pack_forward(const conv_shape *s, const float *w, float *packed)
{
	(in_lanes(s->filters) ? lanes_pack_forward : positions_pack_forward)(s, w, packed);
}

static void pack_backward(const conv_shape *s, const float *w, float *packed)
{
	(in_lanes(s->channels) ? lanes_pack_backward : positions_pack_backward)(s, w, packed);
}

static void forward(const conv_shape *s, const float *x, const float *packed, float *y, float beta, long first, long last, float *scratch)
{
	(void)beta;
	(in_lanes(s->filters) ? lanes_forward : positions_forward)(s, x, packed, y, first, last, scratch);
}

static void backward_data(const conv_shape *s, const float *dy, const float *packed, float *dx, float beta, long first, long last, float *scratch)
{
	(in_lanes(s->channels) ? lanes_backward : positions_backward)(s, dy, packed, dx, beta, first, last, scratch);
}

static long no_weights(const conv_shape *s) { return (void)s, 0; }

static void pack_nothing(const conv_shape *s, const float *w, float *packed) { (void)s, (void)w, (void)packed; }

const conv_set CONV_SET = {
	.level = CONV_LEVEL,
	.scratch = {forward_scratch, backward_data_scratch, backward_filter_scratch},
	.packed = {forward_packed, backward_data_packed, no_weights},
	.pack = {pack_forward, pack_backward, pack_nothing},
	.run = {forward, backward_data, backward_filter},
};
