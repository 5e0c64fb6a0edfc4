#include "../gpu.cuh"

// A block sums 32 columns over its share (y) of the rows: 8 warps take every eighth row each, neighbouring lanes
// neighbouring columns, and the first warp adds up. Where there are several shares, they go to scratch, behind
// their number, for bias_grad_sum.
extern "C" __global__ void __launch_bounds__(256)
bias_grad(const float *dy, float *db, int rows, int cols, float *scratch) {
	__shared__ float part[8][32];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = blockIdx.x * 32 + lane;
	const int share = (rows + gridDim.y - 1) / gridDim.y;
	const int end = min(rows, (int)(blockIdx.y + 1) * share);
	float sum = 0;
	if (col < cols)
		for (int row = blockIdx.y * share + warp; row < end; row += 8)
			sum += dy[row * cols + col];
	part[warp][lane] = sum;
	__syncthreads();
	if (warp > 0 || col >= cols)
		return;
	sum = 0;
	for (int i = 0; i < 8; i++)
		sum += part[i][lane];
	if (gridDim.y == 1)
		db[col] = sum;
	else
		scratch[1 + blockIdx.y * cols + col] = sum;
	if (col + blockIdx.y == 0 && gridDim.y > 1)
		scratch[0] = gridDim.y;
}

extern "C" __global__ void __launch_bounds__(256)
bias_grad_sum(const float *dy, float *db, int rows, int cols, float *scratch) {
	__shared__ float part[8][32];
	const float sum = sum_layers(scratch + 1, scratch[0], cols, blockIdx.x * 32, part);
	const int col = blockIdx.x * 32 + threadIdx.x;
	if (threadIdx.x < 32 && col < cols)
		db[col] = sum;
}
