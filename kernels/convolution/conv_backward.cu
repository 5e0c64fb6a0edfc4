#include "../gpu.cuh"
#include "conv.cuh"
#include "conv_filter.cuh"

// conv_backward, conv_backward_data, conv_backward_filter. All entries take the same parameters. An entry that computes the gradient of the images
// also adds up the shares of the gradient of the filters, in the blocks of a second layer of its grid (z): the sum then takes no launch of its own.

#define PARAMETERS                                                                                                      \
	const float *x, const float *dy, const float *w, float *dx, float *dw, int images, int channels, int height, int width,  \
		int filters, int kernel, int stride, int pad, float beta, float *scratch

// ---- The gradient of the images.

// sum_blocks lets the blocks of a layer of the grid add up the shares of the filters' gradient.
template <bool SQUARES, int WARPS>
DEVICE void sum_blocks(const float *scratch, float *dw, int channels, int filters, int kernel, float part[8][32]) {
	const int results = SQUARES ? (filters + 15) / 16 * ((channels + 15) / 16) * 2304 : filters * channels * kernel * kernel;
	for (int block = blockIdx.y * gridDim.x + blockIdx.x; block * 32 < results; block += gridDim.x * gridDim.y) {
		if (SQUARES)
			sum_squares<WARPS>(scratch, dw, channels, filters, block, part);
		else
			sum_weights<WARPS>(scratch, dw, results, block, part);
		__syncthreads(); // before part is used again
	}
}

#define DIRECT_BACKWARD(NAME, K, WIDTH, GROUPS, STRIP)                                                                \
	extern "C" __global__ void __launch_bounds__(WIDTH * 8 / STRIP * GROUPS, STRIP) NAME(PARAMETERS) {               \
		__shared__ Direct<K, WIDTH, GROUPS, STRIP>::Shared shared;                                             \
		__shared__ float part[8][32];                                                                          \
		if (blockIdx.z > 0)                                                                                    \
			return sum_blocks<K == 3, WIDTH * 8 / STRIP * GROUPS / 32>(scratch, dw, channels, filters, kernel, part); \
		const Shape s = {images, channels, height, width, filters, K, 1, pad};                                 \
		const Plan p = {filters, s.out(height), s.out(width), channels, height, width, K - 1 - pad};           \
		direct<Direct<K, WIDTH, GROUPS, STRIP>, K, true>(shared, dy, w, dx, p, beta);                          \
	}

DIRECT_BACKWARD(conv_backward_data_3_32, 3, 32, 2, 4)
DIRECT_BACKWARD(conv_backward_data_3_16, 3, 16, 4, 4)
DIRECT_BACKWARD(conv_backward_data_3_16_more, 3, 16, 4, 2)
DIRECT_BACKWARD(conv_backward_data_3_8, 3, 8, 8, 4)
DIRECT_BACKWARD(conv_backward_data_3_8_more, 3, 8, 8, 2)
DIRECT_BACKWARD(conv_backward_data_5_32, 5, 32, 2, 4)
DIRECT_BACKWARD(conv_backward_data_5_16, 5, 16, 2, 4)

// ---- At stride 2, windows of 3 x 3, pad 1. The values of dX in even and odd rows and columns see different taps: 1, 2, 2 and 4 of the 9. A thread
// computes 2 x 2 values of GROUP channels, STRIP times below one another, from 2 x 2 values of dY each, and leaves out no tap and tries none in vain.
// A value's terms are added in the order of the filters, then of the taps.

template <int TILE_WIDTH, int TILE_GROUPS, int TILE_STRIP> struct Halved {
	static const int WIDTH = TILE_WIDTH, GROUPS = TILE_GROUPS, STRIP = TILE_STRIP;
	static const int ROWS = 8, STRIPS = ROWS / STRIP, GROUP = 8, RESULTS = GROUP * GROUPS, THREADS = WIDTH * STRIPS * GROUPS;
	static const int DEPTH = 4, TAPS = 9, PITCH = 24; // the strips of a warp lie in different banks

	struct alignas(16) Shared {
		float w[DEPTH * TAPS][RESULTS + 4];
		float dy[DEPTH][ROWS + 1][PITCH];
	};
};

// Shelf is the next filters' part of dY and of the weights, on its way to shared memory.
template <class D> struct Shelf {
	static const int COLS = D::WIDTH + 1, ROWS = D::ROWS + 1, EACH = D::RESULTS * D::TAPS;
	Batch<D::DEPTH * ROWS * COLS, D::THREADS> values;
	Batch<D::DEPTH * EACH, D::THREADS> weights;

	__device__ __forceinline__ void fetch(const float *dy, const float *w, const Shape &s, int rows, int cols, int from, int top, int left, int at) {
		values.fetch([&](int e) {
			const int col = left + e % COLS, row = top + e / COLS % ROWS, filter = from + e / (COLS * ROWS);
			return pick(dy, (filter * rows + row) * cols + col, within(filter, s.filters) & within(row, rows) & within(col, cols));
		});
		weights.fetch([&](int e) {
			const int filter = from + e / EACH, rest = e % EACH;
			return pick(w, (filter * s.channels + at) * D::TAPS + rest, within(filter, s.filters) & (at + rest / D::TAPS < s.channels));
		});
	}

	__device__ __forceinline__ void store(typename D::Shared &s) const {
		values.store([&](int e, float v) { s.dy[e / (COLS * ROWS)][e / COLS % ROWS][e % COLS] = v; });
		weights.store([&](int e, float v) { s.w[e / EACH * D::TAPS + e % D::TAPS][e % EACH / D::TAPS] = v; });
	}
};

template <class D>
DEVICE void halved(typename D::Shared &s, const float *dy, const float *w, float *dx, const Shape &shape, float beta) {
	const int rows = shape.out(shape.height), cols = shape.out(shape.width);
	const int squares_across = (shape.width + 1) / 2, squares_down = (shape.height + 1) / 2;
	const int across = (squares_across + D::WIDTH - 1) / D::WIDTH, down = (squares_down + D::ROWS - 1) / D::ROWS;
	const int left = blockIdx.x % across * D::WIDTH, top = blockIdx.x / across % down * D::ROWS;
	const int image = blockIdx.x / (across * down), at = blockIdx.y * D::RESULTS;
	const int col = threadIdx.x % D::WIDTH, row = threadIdx.x / D::WIDTH % D::STRIPS * D::STRIP;
	const int group = threadIdx.x / (D::WIDTH * D::STRIPS);
	dy += image * shape.filters * rows * cols;
	float sum[D::STRIP][2][2][D::GROUP] = {};
	Shelf<D> shelf;
	shelf.fetch(dy, w, shape, rows, cols, 0, top, left, at);
	for (int from = 0; from < shape.filters; from += D::DEPTH) {
		shelf.store(s);
		__syncthreads();
		shelf.fetch(dy, w, shape, rows, cols, from + D::DEPTH, top, left, at);
#pragma unroll 1
		for (int filter = 0; filter < min(D::DEPTH, shape.filters - from); filter++) {
			float g[D::STRIP + 1][2];
#pragma unroll
			for (int i = 0; i <= D::STRIP; i++)
#pragma unroll
				for (int j = 0; j < 2; j++)
					g[i][j] = s.dy[filter][row + i][col + j];
#pragma unroll
			for (int tap = 0; tap < D::TAPS; tap++) {
				// Tap 1 of a direction belongs to even places, taps 0 and 2 to odd ones, tap 0 with the next value of dY.
				const int y = tap / 3, x = tap % 3;
				float v[D::GROUP];
				load<D::GROUP>(v, &s.w[filter * D::TAPS + tap][group * D::GROUP]);
#pragma unroll
				for (int i = 0; i < D::STRIP; i++)
#pragma unroll
					for (int c = 0; c < D::GROUP; c++)
						sum[i][y != 1][x != 1][c] += v[c] * g[i + (y == 0)][x == 0];
			}
		}
		__syncthreads();
	}
#pragma unroll
	for (int c = 0; c < D::GROUP; c++) {
		const int channel = at + group * D::GROUP + c;
#pragma unroll
		for (int i = 0; i < 2 * D::STRIP; i++) {
			const int iy = 2 * (top + row) + i;
#pragma unroll
			for (int j = 0; j < 2; j++) {
				const int ix = 2 * (left + col) + j;
				if (channel < shape.channels && iy < shape.height && ix < shape.width)
					finish(dx + ((image * shape.channels + channel) * shape.height + iy) * shape.width + ix, sum[i / 2][i % 2][j][c], beta);
			}
		}
	}
}

#define HALVED_BACKWARD(NAME, WIDTH, GROUPS, STRIP)                                                                    \
	extern "C" __global__ void __launch_bounds__(WIDTH * 8 / STRIP * GROUPS, 2) NAME(PARAMETERS) {                   \
		__shared__ Halved<WIDTH, GROUPS, STRIP>::Shared shared;                                                \
		__shared__ float part[8][32];                                                                          \
		if (blockIdx.z > 0)                                                                                    \
			return sum_blocks<false, WIDTH * 8 / STRIP * GROUPS / 32>(scratch, dw, channels, filters, kernel, part); \
		const Shape s = {images, channels, height, width, filters, 3, 2, 1};                                   \
		halved<Halved<WIDTH, GROUPS, STRIP>>(shared, dy, w, dx, s, beta);                                      \
	}

HALVED_BACKWARD(conv_backward_data_3_halved_16, 16, 2, 2)
HALVED_BACKWARD(conv_backward_data_3_halved_8, 8, 4, 1)

// ---- As a matrix product: terms are (filter, tap). K is the size of the windows where the compiler knows it, else 0.

// Weights going back: of channel `at`, terms (filter, tap).
template <int K> struct Channels {
	static const bool BY_TERM = true;
	const float *w;
	int channels, kernel;

	__device__ __forceinline__ float operator()(int at, int term, bool there) const {
		const int taps = K ? K * K : kernel * kernel, filter = (unsigned)term / taps;
		return pick(w, (filter * channels + at) * taps + term - filter * taps, there & (at < channels));
	}
};

// The values of dy whose windows hold one position of the images, at a tap: one, or none.
template <int K> struct Outputs {
	static const bool BY_TERM = false;
	const float *dy;
	Shape s;
	int rows, cols, top, left;

	__device__ __forceinline__ Outputs(const float *images, const Shape &shape, int position) : s(shape) {
		rows = s.out(s.height), cols = s.out(s.width);
		const int image = position / (s.height * s.width);
		dy = image < s.images ? images + image * s.filters * rows * cols : images;
		top = image < s.images ? position / s.width % s.height + s.pad : -1;
		left = position % s.width + s.pad;
	}

	__device__ __forceinline__ float operator()(int, int term, bool there) const {
		const int k = K ? K : s.kernel;
		const int filter = term / (k * k), y = top - term / k % k, x = left - term % k;
		const int row = y / s.stride, col = x / s.stride;
		const bool hit = (y >= 0) & (x >= 0) & (row * s.stride == y) & (col * s.stride == x);
		return pick(dy, (filter * rows + row) * cols + col, there & hit & (row < rows) & (col < cols));
	}
};

#define PRODUCT_BACKWARD(NAME, K)                                                                                      \
	extern "C" __global__ void __launch_bounds__(Product::THREADS) NAME(PARAMETERS) {                                 \
		__shared__ Product::Shared shared;                                                                     \
		const Shape s = {images, channels, height, width, filters, kernel, stride, pad};                       \
		/* Where there is no window, there is nothing to read. */                                              \
		const int terms = s.out(height) * s.out(width) > 0 ? filters * kernel * kernel : 0;                    \
		multiply(shared, Channels<K>{w, channels, kernel}, Outputs<K>(dy, s, column()), dx, images, channels,  \
		         height * width, terms, beta);                                                                 \
	}

PRODUCT_BACKWARD(conv_backward_data_3, 3)
PRODUCT_BACKWARD(conv_backward_data, 0)

// ---- The gradient of the filters.

#define SQUARES(NAME, WIDTH)                                                                                           \
	extern "C" __global__ void __launch_bounds__(256, 2) NAME(PARAMETERS) {                                          \
		__shared__ Square<WIDTH>::Shared shared;                                                               \
		squares<Square<WIDTH>>(shared, x, dy, images, channels, height, width, filters, pad, scratch);         \
	}

SQUARES(conv_backward_filter_3_32, 32)
SQUARES(conv_backward_filter_3_16, 16)
SQUARES(conv_backward_filter_3_8, 8)

extern "C" __global__ void __launch_bounds__(Product::THREADS) conv_backward_filter(PARAMETERS) {
	__shared__ Product::Shared shared;
	filter_product(shared, x, dy, dw, images, channels, height, width, filters, kernel, stride, pad, scratch);
}

extern "C" __global__ void __launch_bounds__(256) conv_backward_filter_3_sum(PARAMETERS) {
	__shared__ float part[8][32];
	sum_squares<8>(scratch, dw, channels, filters, blockIdx.x, part);
}

extern "C" __global__ void __launch_bounds__(256) conv_backward_filter_sum(PARAMETERS) {
	__shared__ float part[8][32];
	sum_weights<8>(scratch, dw, filters * channels * kernel * kernel, blockIdx.x, part);
}
