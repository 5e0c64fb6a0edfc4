#include "../gpu.cuh"

// conv_forward and conv_backward_data. Two ways: windows of 3 x 3 and 5 x 5 at stride 1, which is nearly all that
// networks have, take the direct way, where a tile of the image stays in shared memory for all windows and filters
// that need it. Everything else is a matrix product that never stores its second operand, the windows (im2col).

// Shape is that of a convolution in its forward direction.
struct Shape {
	int images, channels, height, width, filters, kernel, stride, pad;

	__device__ __forceinline__ int out(int size) const {
		return size + 2 * pad < kernel ? 0 : (size + 2 * pad - kernel) / stride + 1;
	}
};

// finish gives the new value of an element of the result: with beta 0 the old one is not read.
DEVICE void finish(float *y, float sum, float beta) { *y = beta == 0 ? sum : beta * *y + sum; }

// ---- The direct way.

// A thread of a Direct block computes STRIP values below one another for GROUP results (filters going forward,
// channels going back); WIDTH x STRIPS threads share a tile of WIDTH x ROWS positions, GROUPS times for other results.
// Lanes lie side by side in a row of the image, so that they read and write neighbours.
template <int K, int TILE_WIDTH, int TILE_GROUPS> struct Direct {
	static const int WIDTH = TILE_WIDTH, GROUPS = TILE_GROUPS;
	static const int STRIP = 4, STRIPS = 2, ROWS = STRIP * STRIPS, GROUP = 8, RESULTS = GROUP * GROUPS;
	static const int THREADS = WIDTH * STRIPS * GROUPS;
	static const int DEPTH = K == 3 ? 4 : 2; // planes at a time in shared memory
	static const int TAPS = K * K;
	// Rows are so long that the two strips of a warp, when it holds two, lie in different banks.
	static const int PITCH = WIDTH == 16 ? 20 : WIDTH + K - 1;

	struct alignas(16) Shared {
		float w[DEPTH * TAPS][RESULTS + 4];
		float x[DEPTH][ROWS + K - 1][PITCH];
	};
};

// Plan is a convolution at stride 1 as the direct way sees it: going back, dY is the image, dX the result, and the
// filters are turned round.
struct Plan {
	int planes, height, width;          // of the image
	int results, out_height, out_width; // of the result
	int pad;
};

// Pieces are the parts of the image and of the filters that the block multiplies next, on their way to shared memory.
template <class D, int K, bool BACK> struct Pieces {
	static const int COLS = D::WIDTH + K - 1, ROWS = D::ROWS + K - 1;
	// A warp takes 8 weights in a row, tap after tap and plane after plane, of 4 results at a time: whole sectors of
	// memory, and no two lanes write to the same bank.
	static const int WEIGHTS = D::DEPTH * D::TAPS, EIGHTS = (WEIGHTS + 7) / 8, WARPS = D::THREADS / 32;
	static const int EACH = EIGHTS * D::RESULTS / 4 / WARPS;
	Batch<D::DEPTH * ROWS * COLS, D::THREADS> image;
	float filters[EACH];

	static __device__ __forceinline__ int weight(int i) { return i % EIGHTS * 8 + threadIdx.x % 8; }
	static __device__ __forceinline__ int result(int i) {
		return (i / EIGHTS * WARPS + threadIdx.x / 32) * 4 + threadIdx.x % 32 / 8;
	}

	// fetch begins with planes from.. of the tile at (top, left), zeros past the edges of the image, and with the weights
	// between them and results at...
	__device__ __forceinline__ void fetch(const float *x, const float *w, const Plan &p, int from, int top, int left, int at) {
		image.fetch([&](int e) {
			const int ix = left + e % COLS, iy = top + e / COLS % ROWS, plane = from + e / (COLS * ROWS);
			const bool inside = within(plane, p.planes) & within(iy, p.height) & within(ix, p.width);
			return pick(x, (plane * p.height + iy) * p.width + ix, inside);
		});
		const int end = min(WEIGHTS, (p.planes - from) * D::TAPS);
#pragma unroll
		for (int i = 0; i < EACH; i++) {
			const int k = weight(i), r = at + result(i);
			const int place = BACK ? ((from + k / D::TAPS) * p.results + r) * D::TAPS + D::TAPS - 1 - k % D::TAPS
			                       : (r * p.planes + from) * D::TAPS + k;
			filters[i] = pick(w, place, (k < end) & (r < p.results));
		}
	}

	// store puts them into shared memory, results side by side.
	__device__ __forceinline__ void store(typename D::Shared &s) const {
		image.store([&](int e, float v) { s.x[e / (COLS * ROWS)][e / COLS % ROWS][e % COLS] = v; });
#pragma unroll
		for (int i = 0; i < EACH; i++)
			if (weight(i) < WEIGHTS)
				s.w[weight(i)][result(i)] = filters[i];
	}
};

// add_plane adds one plane's products to the thread's sums.
template <class D, int K>
DEVICE void add_plane(float (&sum)[D::STRIP][D::GROUP], typename D::Shared &s, int plane, int col, int row, int group) {
	float x[D::STRIP + K - 1][K];
#pragma unroll
	for (int i = 0; i < D::STRIP + K - 1; i++)
#pragma unroll
		for (int j = 0; j < K; j++)
			x[i][j] = s.x[plane][row + i][col + j];
#pragma unroll
	for (int tap = 0; tap < D::TAPS; tap++) {
		float w[D::GROUP];
		load<D::GROUP>(w, &s.w[plane * D::TAPS + tap][group * D::GROUP]);
#pragma unroll
		for (int i = 0; i < D::STRIP; i++)
#pragma unroll
			for (int g = 0; g < D::GROUP; g++)
				sum[i][g] += x[i + tap / K][tap % K] * w[g];
	}
}

template <class D, int K, bool BACK>
DEVICE void direct(typename D::Shared &s, const float *x, const float *w, float *y, const Plan &p, float beta) {
	const int across = (p.out_width + D::WIDTH - 1) / D::WIDTH, down = (p.out_height + D::ROWS - 1) / D::ROWS;
	const int tile_col = blockIdx.x % across * D::WIDTH, tile_row = blockIdx.x / across % down * D::ROWS;
	const int image = blockIdx.x / (across * down), at = blockIdx.y * D::RESULTS;
	const int col = threadIdx.x % D::WIDTH, row = threadIdx.x / D::WIDTH % D::STRIPS * D::STRIP;
	const int group = threadIdx.x / (D::WIDTH * D::STRIPS);
	x += image * p.planes * p.height * p.width;
	float sum[D::STRIP][D::GROUP] = {};
	Pieces<D, K, BACK> pieces;
	pieces.fetch(x, w, p, 0, tile_row - p.pad, tile_col - p.pad, at);
	for (int from = 0; from < p.planes; from += D::DEPTH) {
		pieces.store(s);
		__syncthreads();
		pieces.fetch(x, w, p, from + D::DEPTH, tile_row - p.pad, tile_col - p.pad, at);
		const int planes = min(D::DEPTH, p.planes - from);
#pragma unroll 1
		for (int plane = 0; plane < planes; plane++)
			add_plane<D, K>(sum, s, plane, col, row, group);
		__syncthreads();
	}
#pragma unroll
	for (int g = 0; g < D::GROUP; g++) {
		const int result = at + group * D::GROUP + g;
#pragma unroll
		for (int i = 0; i < D::STRIP; i++) {
			const int oy = tile_row + row + i, ox = tile_col + col;
			if (result < p.results && oy < p.out_height && ox < p.out_width)
				finish(y + ((image * p.results + result) * p.out_height + oy) * p.out_width + ox, sum[i][g], beta);
		}
	}
}

#define DIRECT_FORWARD(NAME, K, WIDTH, GROUPS)                                                                         \
	extern "C" __global__ void __launch_bounds__(WIDTH * 2 * GROUPS, 4)                                              \
	NAME(const float *x, const float *w, float *y, int images, int channels, int height, int width, int filters,   \
	     int kernel, int stride, int pad) {                                                                        \
		__shared__ Direct<K, WIDTH, GROUPS>::Shared shared;                                                    \
		const Shape s = {images, channels, height, width, filters, K, 1, pad};                                 \
		const Plan p = {channels, height, width, filters, s.out(height), s.out(width), pad};                   \
		direct<Direct<K, WIDTH, GROUPS>, K, false>(shared, x, w, y, p, 0);                                     \
	}

#define DIRECT_BACKWARD(NAME, K, WIDTH, GROUPS)                                                                        \
	extern "C" __global__ void __launch_bounds__(WIDTH * 2 * GROUPS, 4)                                              \
	NAME(const float *dy, const float *w, float *dx, int images, int channels, int height, int width, int filters, \
	     int kernel, int stride, int pad, float beta) {                                                            \
		__shared__ Direct<K, WIDTH, GROUPS>::Shared shared;                                                    \
		const Shape s = {images, channels, height, width, filters, K, 1, pad};                                 \
		const Plan p = {filters, s.out(height), s.out(width), channels, height, width, K - 1 - pad};           \
		direct<Direct<K, WIDTH, GROUPS>, K, true>(shared, dy, w, dx, p, beta);                                 \
	}

DIRECT_FORWARD(conv_forward_3_32, 3, 32, 2)
DIRECT_FORWARD(conv_forward_3_16, 3, 16, 4)
DIRECT_FORWARD(conv_forward_3_8, 3, 8, 8)
DIRECT_FORWARD(conv_forward_5_32, 5, 32, 2)
DIRECT_FORWARD(conv_forward_5_16, 5, 16, 2)
DIRECT_BACKWARD(conv_backward_data_3_32, 3, 32, 2)
DIRECT_BACKWARD(conv_backward_data_3_16, 3, 16, 4)
DIRECT_BACKWARD(conv_backward_data_3_8, 3, 8, 8)
DIRECT_BACKWARD(conv_backward_data_5_32, 5, 32, 2)
DIRECT_BACKWARD(conv_backward_data_5_16, 5, 16, 2)

// ---- As a matrix product: rows are results, columns positions of the result, terms (plane, tap). K is the size of
// the windows where the compiler knows it, which makes divisions cheap, else 0.

typedef Tile<32, 64, 4> Product;

// Weights going forward: of filter `at`.
struct Filters {
	static const bool BY_TERM = true;
	const float *w;
	int filters, terms;

	__device__ __forceinline__ float operator()(int at, int term, bool there) const {
		return pick(w, at * terms + term, there & (at < filters));
	}
};

// Weights going back: of channel `at`, terms (filter, tap).
template <int K> struct Channels {
	static const bool BY_TERM = true;
	const float *w;
	int channels, kernel;

	__device__ __forceinline__ float operator()(int at, int term, bool there) const {
		const int taps = K ? K * K : kernel * kernel;
		return pick(w, (term / taps * channels + at) * taps + term % taps, there & (at < channels));
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
		const int channel = term / (k * k), iy = top + term / k % k, ix = left + term % k;
		return pick(x, (channel * s.height + iy) * s.width + ix, there & within(iy, s.height) & within(ix, s.width));
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

// multiply computes the block's tile of y, which has `results` planes of `positions` values for each image.
template <class A, class B>
DEVICE void multiply(Product::Shared &shared, const A &a, const B &b, float *y, int images, int results, int positions,
                     int terms, float beta) {
	Product tile;
	const int row0 = blockIdx.y * 32, col0 = blockIdx.x * 64;
	tile.multiply(shared, a, b, row0, col0, 0, terms);
	for (int i = 0; i < 4; i++) {
		for (int j = 0; j < 4; j++) {
			const int row = row0 + tile.row() + i, col = col0 + tile.col() + j;
			if (row < results && col < images * positions)
				finish(y + (col / positions * results + row) * positions + col % positions, tile.sum[i][j], beta);
		}
	}
}

// column is the position whose values the thread brings.
DEVICE int column() { return blockIdx.x * 64 + threadIdx.x % 64; }

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

#define PRODUCT_BACKWARD(NAME, K)                                                                                      \
	extern "C" __global__ void __launch_bounds__(Product::THREADS)                                                 \
	NAME(const float *dy, const float *w, float *dx, int images, int channels, int height, int width, int filters, \
	     int kernel, int stride, int pad, float beta) {                                                            \
		__shared__ Product::Shared shared;                                                                     \
		const Shape s = {images, channels, height, width, filters, kernel, stride, pad};                       \
		/* Where there is no window, there is nothing to read. */                                              \
		const int terms = s.out(height) * s.out(width) > 0 ? filters * kernel * kernel : 0;                    \
		multiply(shared, Channels<K>{w, channels, kernel}, Outputs<K>(dy, s, column()), dx, images, channels,  \
		         height * width, terms, beta);                                                                 \
	}

PRODUCT_FORWARD(conv_forward_3, 3)
PRODUCT_FORWARD(conv_forward, 0)
PRODUCT_BACKWARD(conv_backward_data_3, 3)
PRODUCT_BACKWARD(conv_backward_data, 0)
