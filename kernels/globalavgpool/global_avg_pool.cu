#include "../gpu.cuh"

// A warp takes a plane.
extern "C" __global__ void __launch_bounds__(256)
global_avg_pool(const float *x, float *y, int images, int channels, int positions) {
	for (int plane = first() / 32; plane < images * channels; plane += stride() / 32) {
		float sum = 0;
		for (int i = threadIdx.x % 32; i < positions; i += 32)
			sum += x[plane * positions + i];
		sum = warp_sum(sum);
		if (threadIdx.x % 32 == 0)
			y[plane] = sum / positions;
	}
}

extern "C" __global__ void global_avg_pool_grad(const float *dy, float *dx, int images, int channels, int positions) {
	for (int i = first(); i < images * channels * positions; i += stride())
		dx[i] = dy[i / positions] / positions;
}
