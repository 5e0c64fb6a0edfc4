// Direct convolutions of float32 images in NCHW order, for processors with AVX2 and FMA.
//
// Images are copied, one at a time, into zero-padded planes that stay in the caches. The inner
// loops then need no special case for edges. The sums of a tile of outputs stay in registers.
#ifndef FLUENTPS_CONV_H
#define FLUENTPS_CONV_H

// CONV_MAX_KERNEL is the largest kernel that the functions take.
enum { CONV_MAX_KERNEL = 15 };

// conv_shape is a convolution without bias: filters (filters x channels x kernel x kernel) over
// images (images x channels x height x width). pad is at least 0, and every other field is at least 1.
typedef struct {
	long images, channels, height, width, filters, kernel, stride, pad;
	long out_height, out_width;
} conv_shape;

// conv_kind says what a function computes from a and b into c. w is packed. Threads may divide the parts
// among themselves, each with its own scratch: no result depends on the split.
typedef enum {
	CONV_FORWARD,         // x, w, y; parts are images
	CONV_BACKWARD_DATA,   // dY, w, dX = beta*dX + gradient (with beta 0, dX is not read); parts are images
	CONV_BACKWARD_FILTER, // x, dY, dw (a sum over images in their order); parts are channels
	CONV_KINDS
} conv_kind;

// conv_set holds the functions for one instruction set, by kind. Sizes are in floats.
typedef struct {
	// level is the level of the instructions, a value of Level in set.go.
	int level;
	// scratch is the size of one thread's scratch.
	long (*scratch[CONV_KINDS])(const conv_shape *s);
	// packed is the size of packed filters. It is 0 for the gradient of the filters, which packs none.
	long (*packed[CONV_KINDS])(const conv_shape *s);
	// pack copies the filters w in the order in which the kind reads them. The gradient of the filters has no pack.
	void (*pack[CONV_KINDS])(const conv_shape *s, const float *w, float *packed);
	// run computes parts first to last-1.
	void (*run[CONV_KINDS])(const conv_shape *s, const float *a, const float *b, float *c, float beta, long first, long last, float *scratch);
} conv_set;

// conv_sets returns set number i of those that this processor can run, the fastest first, or null past the last.
const conv_set *conv_sets(int i);

// The functions of a set, for callers that cannot call through a pointer.
long conv_scratch(const conv_set *set, conv_kind kind, const conv_shape *s);
long conv_packed(const conv_set *set, conv_kind kind, const conv_shape *s);
void conv_pack(const conv_set *set, conv_kind kind, const conv_shape *s, const float *w, float *packed);
void conv_run(const conv_set *set, conv_kind kind, const conv_shape *s, const float *a, const float *b, float *c, float beta,
	      long first, long last, float *scratch);

#endif
