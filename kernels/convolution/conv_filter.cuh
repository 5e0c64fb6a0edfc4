// The gradient of the filters. The sums run over all images and positions, and there are few of them, so blocks take shares of the
// positions; their sums go to scratch, behind the number of shares, and a later launch adds them up in their order. Windows of 3 x 3 at
// stride 1 have a direct way; everything else is a matrix product whose second operand, the windows, is never stored.

DEVICE int outputs(int size, int kernel, int stride, int pad) {
	return size + 2 * pad < kernel ? 0 : (size + 2 * pad - kernel) / stride + 1;
}

// ---- The direct way.

// A block computes the weights between 16 filters and 16 channels. A tile of WIDTH x 8 positions of both lies in
// shared memory; each of 8 warps takes a row of it, each lane 4 filters, 2 channels and the 9 taps between them.
template <int TILE_WIDTH> struct Square {
	static const int WIDTH = TILE_WIDTH, ROWS = 8, THREADS = 256, SIDE = 16, F = 4, C = 2, TAPS = 9;
	static const int WEIGHTS = SIDE * SIDE * TAPS, PART = WEIGHTS / F;

	union Shared {
		struct {
			float dy[SIDE][ROWS * WIDTH + 1]; // odd lengths: lanes of different planes read different banks
			float x[SIDE][(ROWS + 2) * (WIDTH + 2) + 1];
		} tile;
		float sums[ROWS][PART];
	};
};

// bring puts a tile of SIDE planes from.. of one image into shared memory, zeros where there is nothing. Registers hold
// the sums, so that only some loads can be under way at once.
template <int ROWS, int COLS, int PITCH>
DEVICE void bring(float (&shelf)[16][PITCH], const float *x, int planes, int height, int width, int from, int top, int left) {
	const int count = 16 * ROWS * COLS, at_once = 8 * 256;
#pragma unroll 1
	for (int begin = 0; begin < count; begin += at_once) {
		Batch<at_once, 256> batch;
		batch.fetch([&](int e) {
			e += begin;
			const int ix = left + e % COLS, iy = top + e / COLS % ROWS, plane = from + e / (COLS * ROWS);
			const bool inside = within(plane, planes) & within(iy, height) & within(ix, width);
			return pick(x, (plane * height + iy) * width + ix, inside);
		});
		batch.store([&](int e, float v) {
			e += begin;
			if (e < count)
				shelf[e / (COLS * ROWS)][e % (COLS * ROWS)] = v;
		});
	}
}

// add_row adds the products of one row of positions. The windows of neighbours overlap: each step reads one column.
template <class D> DEVICE void add_row(float (&sum)[D::F][D::C][D::TAPS], const typename D::Shared &s) {
	const int f = threadIdx.x % 4, c = threadIdx.x % 32 / 4, row = threadIdx.x / 32;
	const int pitch = D::WIDTH + 2;
	float x[D::C][3][3];
#pragma unroll
	for (int i = 0; i < D::C; i++)
#pragma unroll
		for (int y = 0; y < 3; y++)
#pragma unroll
			for (int k = 0; k < 2; k++)
				x[i][y][k + 1] = s.tile.x[c + 8 * i][(row + y) * pitch + k];
#pragma unroll 4
	for (int col = 0; col < D::WIDTH; col++) {
#pragma unroll
		for (int i = 0; i < D::C; i++)
#pragma unroll
			for (int y = 0; y < 3; y++) {
				x[i][y][0] = x[i][y][1];
				x[i][y][1] = x[i][y][2];
				x[i][y][2] = s.tile.x[c + 8 * i][(row + y) * pitch + col + 2];
			}
#pragma unroll
		for (int j = 0; j < D::F; j++) {
			const float g = s.tile.dy[f + 4 * j][row * D::WIDTH + col];
#pragma unroll
			for (int i = 0; i < D::C; i++)
#pragma unroll
				for (int tap = 0; tap < D::TAPS; tap++)
					sum[j][i][tap] += g * x[i][tap / 3][tap % 3];
		}
	}
}

// leave adds the warps' sums in their order and writes them to y: of filter f + 4j, channel c + 8i and a tap, in the
// order j, i, tap, c, f.
template <class D> DEVICE void leave(float *y, const float (&sum)[D::F][D::C][D::TAPS], typename D::Shared &s) {
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
	for (int j = 0; j < D::F; j++) {
#pragma unroll
		for (int q = 0; q < D::C * D::TAPS; q++)
			s.sums[warp][q * 32 + lane] = sum[j][q / D::TAPS][q % D::TAPS];
		__syncthreads();
		for (int e = threadIdx.x; e < D::PART; e += D::THREADS) {
			float total = 0;
			for (int w = 0; w < D::ROWS; w++)
				total += s.sums[w][e];
			y[j * D::PART + e] = total;
		}
		__syncthreads();
	}
}

template <class D>
DEVICE void squares(typename D::Shared &s, const float *x, const float *dy, int images, int channels, int height, int width,
                   int filters, int pad, float *scratch) {
	const int rows = outputs(height, 3, 1, pad), cols = outputs(width, 3, 1, pad);
	const int across = (cols + D::WIDTH - 1) / D::WIDTH, down = (rows + D::ROWS - 1) / D::ROWS;
	const int filter = blockIdx.y * D::SIDE, channel = blockIdx.z * D::SIDE;
	float sum[D::F][D::C][D::TAPS] = {};
	for (int tile = blockIdx.x; tile < images * down * across; tile += gridDim.x) {
		const int left = tile % across * D::WIDTH, top = tile / across % down * D::ROWS, image = tile / (across * down);
		bring<D::ROWS, D::WIDTH>(s.tile.dy, dy + image * filters * rows * cols, filters, rows, cols, filter, top, left);
		bring<D::ROWS + 2, D::WIDTH + 2>(s.tile.x, x + image * channels * height * width, channels, height, width, channel,
		                                 top - pad, left - pad);
		__syncthreads();
		add_row<D>(sum, s);
		__syncthreads();
	}
	const int squares = gridDim.y * gridDim.z, square = blockIdx.y * gridDim.z + blockIdx.z;
	leave<D>(scratch + 1 + (blockIdx.x * squares + square) * D::WEIGHTS, sum, s);
	if (blockIdx.x + square == 0 && threadIdx.x == 0)
		scratch[0] = gridDim.x;
}

// sum_squares adds the shares of 32 results from `at` on, which lie in the order of leave.
template <int WARPS>
DEVICE void sum_squares(const float *scratch, float *dw, int channels, int filters, int block, float part[8][32]) {
	const int squares_across = (channels + 15) / 16, results = (filters + 15) / 16 * squares_across * 2304;
	const float sum = sum_layers<WARPS>(scratch + 1, scratch[0], results, block * 32, part);
	const int at = block * 32 + threadIdx.x;
	if (threadIdx.x >= 32 || at >= results)
		return;
	const int square = at / 2304, j = at / 576 % 4, i = at / 288 % 2, tap = at / 32 % 9, c = at / 4 % 8, f = at % 4;
	const int filter = square / squares_across * 16 + f + 4 * j, channel = square % squares_across * 16 + c + 8 * i;
	if (filter < filters && channel < channels)
		dw[(filter * channels + channel) * 9 + tap] = sum;
}

// ---- As a matrix product: rows are filters, columns (channel, tap), terms all positions of dY.

struct Gradients {
	static const bool BY_TERM = true;
	const float *dy;
	int filters, positions;

	__device__ __forceinline__ float operator()(int at, int term, bool there) const {
		const int image = (unsigned)term / positions; // unsigned divisions take fewer instructions
		return pick(dy, (image * filters + at) * positions + term - image * positions, there & (at < filters));
	}
};

// Positions are the windows of x. A thread brings the same weights for all terms, so their divisions stand before the loop over terms. That is
// why windows whose size the compiler knows would take more instructions: it would divide by a constant again for each term.
struct Positions {
	static const bool BY_TERM = true;
	const float *x;
	int channels, height, width, kernel, stride, pad, rows, cols;

	__device__ __forceinline__ float operator()(int at, int term, bool there) const {
		const int image = (unsigned)term / (rows * cols), position = term - image * rows * cols; // unsigned divisions take fewer instructions
		const int oy = (unsigned)position / cols, ox = position - oy * cols;
		const int channel = (unsigned)at / (kernel * kernel), tap = at - channel * kernel * kernel, y = (unsigned)tap / kernel;
		const int iy = oy * stride + y - pad, ix = ox * stride + tap - y * kernel - pad;
		const bool inside = there & (channel < channels) & within(iy, height) & within(ix, width);
		return pick(x, ((image * channels + channel) * height + iy) * width + ix, inside);
	}
};

DEVICE void filter_product(Product::Shared &shared, const float *x, const float *dy, float *dw, int images, int channels, int height,
                           int width, int filters, int kernel, int stride, int pad, float *scratch) {
	Product tile;
	const int rows = outputs(height, kernel, stride, pad), cols = outputs(width, kernel, stride, pad);
	const int weights = channels * kernel * kernel, terms = height * width > 0 ? images * rows * cols : 0;
	const int share = (terms + gridDim.z - 1) / gridDim.z, row0 = blockIdx.y * 32, col0 = blockIdx.x * 64;
	tile.multiply(shared, Gradients{dy, filters, rows * cols}, Positions{x, channels, height, width, kernel, stride, pad, rows, cols},
	              row0, col0, blockIdx.z * share, min(terms, (int)(blockIdx.z + 1) * share));
	for (int i = 0; i < 4; i++) {
		for (int j = 0; j < 4; j++) {
			const int row = row0 + tile.row() + i, col = col0 + tile.col() + j;
			if (row >= filters || col >= weights)
				continue;
			if (gridDim.z == 1)
				dw[row * weights + col] = tile.sum[i][j];
			else
				scratch[1 + (blockIdx.z * filters + row) * weights + col] = tile.sum[i][j];
		}
	}
	if (blockIdx.x + blockIdx.y + blockIdx.z + threadIdx.x == 0 && gridDim.z > 1)
		scratch[0] = gridDim.z;
}

// sum_weights adds the shares of 32 weights that filter_product has left.
template <int WARPS>
DEVICE void sum_weights(const float *scratch, float *dw, int weights, int block, float part[8][32]) {
	const int at = block * 32 + threadIdx.x;
	const float sum = sum_layers<WARPS>(scratch + 1, scratch[0], weights, block * 32, part);
	if (threadIdx.x < 32 && at < weights)
		dw[at] = sum;
}
