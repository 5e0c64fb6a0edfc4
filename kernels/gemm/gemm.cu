#include "../gpu.cuh"

// Matrix is an operand of size rows (of A) or columns (of B). The terms of one lie side by side in memory, or else
// the rows or columns of one term do.
template <bool TERMS_SIDE_BY_SIDE> struct Matrix {
	static const bool BY_TERM = TERMS_SIDE_BY_SIDE;
	const float *x;
	int size, terms;

	__device__ __forceinline__ float operator()(int at, int term, bool there) const {
		return pick(x, BY_TERM ? at * terms + term : term * size + at, there & (at < size));
	}
};

DEVICE float finish(float sum, const float *c, const float *bias, int at, int col, float beta) {
	if (beta != 0)
		sum += beta * c[at];
	if (bias)
		sum += bias[col];
	return sum;
}

// product computes this block's tile of C. Where the grid has several layers (z), each takes a part of the terms and
// leaves its sums in scratch, layer after layer, behind the number of layers; gemm_sum does the rest.
template <int SIZE, int P, bool A_BY_TERM, bool B_BY_TERM>
DEVICE void product(typename Tile<SIZE, SIZE, P>::Shared &shared, const float *a, const float *b, float *c,
                    const float *bias, int m, int n, int k, float beta, float *scratch) {
	Tile<SIZE, SIZE, P> tile;
	const Matrix<A_BY_TERM> left = {a, m, k};
	const Matrix<B_BY_TERM> right = {b, n, k};
	const int layers = gridDim.z, layer = blockIdx.z;
	const int part = (k + layers - 1) / layers;
	const int row0 = blockIdx.y * SIZE, col0 = blockIdx.x * SIZE;
	tile.multiply(shared, left, right, row0, col0, layer * part, min(k, (layer + 1) * part));
	if (layers > 1 && threadIdx.x == 0 && blockIdx.x + blockIdx.y + blockIdx.z == 0)
		scratch[0] = layers;
	for (int i = 0; i < P; i++) {
		for (int j = 0; j < P; j++) {
			int row = row0 + tile.row() + i, col = col0 + tile.col() + j, at = row * n + col;
			if (row >= m || col >= n)
				continue;
			if (layers > 1)
				scratch[1 + layer * m * n + at] = tile.sum[i][j];
			else
				c[at] = finish(tile.sum[i][j], c, bias, at, col, beta);
		}
	}
}

#define GEMM(NAME, SIZE, P, A_BY_TERM, B_BY_TERM)                                                                      \
	extern "C" __global__ void __launch_bounds__(256)                                                              \
	NAME(const float *a, const float *b, float *c, const float *bias, int m, int n, int k, float beta,             \
	     float *scratch) {                                                                                         \
		__shared__ Tile<SIZE, SIZE, P>::Shared shared;                                                         \
		product<SIZE, P, A_BY_TERM, B_BY_TERM>(shared, a, b, c, bias, m, n, k, beta, scratch);                 \
	}

GEMM(gemm_nn, 64, 4, true, false)
GEMM(gemm_nt, 64, 4, true, true)
GEMM(gemm_tn, 64, 4, false, false)

// For products with too few tiles of 64 x 64 to fill a GPU.
GEMM(gemm_nn_small, 32, 2, true, false)
GEMM(gemm_nt_small, 32, 2, true, true)
GEMM(gemm_tn_small, 32, 2, false, false)

extern "C" __global__ void __launch_bounds__(256)
gemm_sum(const float *a, const float *b, float *c, const float *bias, int m, int n, int k, float beta, float *scratch) {
	__shared__ float part[8][32];
	const float sum = sum_layers(scratch + 1, scratch[0], m * n, blockIdx.x * 32, part);
	const int at = blockIdx.x * 32 + threadIdx.x;
	if (threadIdx.x < 32 && at < m * n)
		c[at] = finish(sum, c, bias, at, at % n, beta);
}
