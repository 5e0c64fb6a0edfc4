// While one image is computed, the memory of the next image is prefetched, because no processor predicts where it is.

typedef struct {
	const char *in, *in_end, *out, *out_end; // ranges that are read and written
	long in_step, out_step;                  // bytes per step
} ahead;

enum { LINE_BYTES = 64 };

// ahead_of returns the prefetch of floats that will be read and written, spread over a number of steps. Images without
// pixels have none.
static ahead ahead_of(const float *in, long ins, const float *out, long outs, long steps)
{
	const long per_step = (steps > 0 ? steps : 1) * LINE_BYTES / (long)sizeof *in;
	return (ahead){
		.in = (const char *)in, .in_end = (const char *)(in + ins), .in_step = ceil_div(ins, per_step) * LINE_BYTES,
		.out = (const char *)out, .out_end = (const char *)(out + outs), .out_step = ceil_div(outs, per_step) * LINE_BYTES,
	};
}

static inline void fetch(ahead *a)
{
	for (const char *stop = a->in + a->in_step; a->in < stop && a->in < a->in_end; a->in += LINE_BYTES)
		__builtin_prefetch(a->in, 0, 2);
	for (const char *stop = a->out + a->out_step; a->out < stop && a->out < a->out_end; a->out += LINE_BYTES)
		__builtin_prefetch(a->out, 1, 2);
}

// ahead_forward returns the prefetch of the image after image i.
static ahead ahead_forward(const conv_shape *s, const float *x, const float *y, long i, long steps)
{
	const long in = s->channels * s->height * s->width, out = s->filters * s->out_height * s->out_width;
	return ahead_of(x + (i + 1) * in, in, y + (i + 1) * out, out, steps);
}

// ahead_backward returns the part of the prefetch that phase p makes in the gradient of the images. The gradient is
// written once all phases are computed.
static ahead ahead_backward(const conv_shape *s, const float *dy, const float *dx, long i, long p, long steps)
{
	const long in = s->filters * s->out_height * s->out_width, out = s->channels * s->height * s->width, phases = s->stride * s->stride;
	return ahead_of(dy + (i + 1) * in + in / phases * p, in / phases, dx + (i + (phases == 1)) * out + out / phases * p, out / phases, steps);
}
