#include "../gpu.cuh"
#include "conv.cuh"

// conv_forward. Two ways: windows of 3 x 3 and 5 x 5 at stride 1, which is nearly all that networks have, take the direct way. Everything else is a
// matrix product that never stores its second operand, the windows (im2col).

#define DIRECT_FORWARD(NAME, K, WIDTH, GROUPS, STRIP)                                                                         \
	extern "C" __global__ void __launch_bounds__(WIDTH * 8 / STRIP * GROUPS, STRIP)                                              \
	NAME(const float *x, const float *w, float *y, int images, int channels, int height, int width, int filters,   \
	     int kernel, int stride, int pad) {                                                                        \
		__shared__ Direct<K, WIDTH, GROUPS, STRIP>::Shared shared;                                                    \
		const Shape s = {images, channels, height, width, filters, K, 1, pad};                                 \
		const Plan p = {channels, height, width, filters, s.out(height), s.out(width), pad};                   \
		direct<Direct<K, WIDTH, GROUPS, STRIP>, K, false>(shared, x, w, y, p, 0);                                     \
	}

DIRECT_FORWARD(conv_forward_3_32, 3, 32, 2, 4)
DIRECT_FORWARD(conv_forward_3_16, 3, 16, 4, 4)
DIRECT_FORWARD(conv_forward_3_16_more, 3, 16, 4, 2)
DIRECT_FORWARD(conv_forward_3_8, 3, 8, 8, 4)
DIRECT_FORWARD(conv_forward_3_8_more, 3, 8, 8, 2)
DIRECT_FORWARD(conv_forward_5_32, 5, 32, 2, 4)
DIRECT_FORWARD(conv_forward_5_16, 5, 16, 2, 4)

// ---- As a matrix product. K is the size of the windows where the compiler knows it, which makes divisions cheap, else 0.

// Weights going forward: of filter `at`.
struct Filters {
	static const bool BY_TERM = true;
	const float *w;
	int filters, terms;

	__device__ __forceinline__ float operator()(int at, int term, bool there) const {
		return pick(w, at * terms + term, there & (at < filters));
	}
};

// The window of x at one position of the result, which is all that a thread brings.
template <int K> struct Windows {
	static const bool BY_TERM = false;
	const float *x;
	Shape s;
	int top, left;

	__device__ __forceinline__ Windows(const float *images, const Shape &shape, int position) : s(shape) {
		const int rows = s.out(s.height), cols = s.out(s.width);
		const int image = position / (rows * cols);
		x = image < s.images ? images + image * s.channels * s.height * s.width : images;
		// Past the last image, all is outside.
		top = image < s.images ? position / cols % rows * s.stride - s.pad : -s.pad - s.kernel;
		left = position % cols * s.stride - s.pad;
	}

	__device__ __forceinline__ float operator()(int, int term, bool there) const {
		const int k = K ? K : s.kernel;
		const unsigned t = term; // unsigned divisions take fewer instructions
		const int channel = t / (k * k), iy = top + t / k % k, ix = left + t % k;
		return pick(x, (channel * s.height + iy) * s.width + ix, there & within(iy, s.height) & within(ix, s.width));
	}
};

#define PRODUCT_FORWARD(NAME, K)                                                                                       \
	extern "C" __global__ void __launch_bounds__(Product::THREADS)                                                 \
	NAME(const float *x, const float *w, float *y, int images, int channels, int height, int width, int filters,   \
	     int kernel, int stride, int pad) {                                                                        \
		__shared__ Product::Shared shared;                                                                     \
		const Shape s = {images, channels, height, width, filters, kernel, stride, pad};                       \
		/* An image without a pixel has nothing to read. */                                                    \
		const int terms = height * width > 0 ? channels * kernel * kernel : 0;                                 \
		multiply(shared, Filters{w, filters, terms}, Windows<K>(x, s, column()), y, images, filters,           \
		         s.out(height) * s.out(width), terms, 0);                                                      \
	}

PRODUCT_FORWARD(conv_forward_3, 3)
PRODUCT_FORWARD(conv_forward, 0)
