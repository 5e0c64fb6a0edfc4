// What forward and backward of convolutions share: the direct way, where a tile of the image stays in shared memory for all windows and filters that
// need it.

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
// Lanes lie side by side in a row of the image, so that they read and write neighbours. Strips of 2 take more instructions than
// strips of 4, but there are twice as many threads: for launches that would leave most of a GPU's schedulers with one warp.
template <int K, int TILE_WIDTH, int TILE_GROUPS, int TILE_STRIP> struct Direct {
	static const int WIDTH = TILE_WIDTH, GROUPS = TILE_GROUPS;
	static const int STRIP = TILE_STRIP, ROWS = 8, STRIPS = ROWS / STRIP, GROUP = 8, RESULTS = GROUP * GROUPS;
	static const int THREADS = WIDTH * STRIPS * GROUPS;
	static const int DEPTH = K == 3 ? 4 : 2; // planes at a time in shared memory
	static const int TAPS = K * K;
	// Rows are so long that the strips of a warp, when it holds several, lie in different banks.
	static const int PITCH = WIDTH == 16 ? (STRIP == 4 ? 20 : 24) : WIDTH == 8 && STRIP == 2 ? 12 : WIDTH + K - 1;

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

// ---- As a matrix product: rows are results, columns positions of the result, terms (plane, tap).

typedef Tile<32, 64, 4> Product;

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
