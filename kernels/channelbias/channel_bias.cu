#include "../gpu.cuh"

// NaN stays NaN, as fmaxf would not let it.
extern "C" __global__ void channel_bias_relu(float *x, const float *bias, int images, int channels, int positions) {
	for (int i = first(); i < images * channels * positions; i += stride()) {
		float v = x[i] + bias[i / positions % channels];
		x[i] = v < 0 ? 0 : v;
	}
}

// A block sums its share (y) of one channel's (x) values. Where there are several shares, they go to scratch, behind
// their number, for channel_bias_grad_sum.
extern "C" __global__ void __launch_bounds__(256)
channel_bias_grad(const float *dy, float *db, int images, int channels, int positions, float *scratch) {
	__shared__ float part[32];
	const int channel = blockIdx.x, values = images * positions;
	const int share = (values + gridDim.y - 1) / gridDim.y;
	const int end = min(values, (int)(blockIdx.y + 1) * share);
	float sum = 0;
	for (int i = blockIdx.y * share + threadIdx.x; i < end; i += blockDim.x)
		sum += dy[(i / positions * channels + channel) * positions + i % positions];
	sum = block_sum(sum, part);
	if (threadIdx.x > 0)
		return;
	if (gridDim.y == 1)
		db[channel] = sum;
	else
		scratch[1 + blockIdx.y * channels + channel] = sum;
	if (channel + blockIdx.y == 0 && gridDim.y > 1)
		scratch[0] = gridDim.y;
}

extern "C" __global__ void __launch_bounds__(256)
channel_bias_grad_sum(const float *dy, float *db, int images, int channels, int positions, float *scratch) {
	__shared__ float part[8][32];
	const float sum = sum_layers(scratch + 1, scratch[0], channels, blockIdx.x * 32, part);
	const int channel = blockIdx.x * 32 + threadIdx.x;
	if (threadIdx.x < 32 && channel < channels)
		db[channel] = sum;
}
