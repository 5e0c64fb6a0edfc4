#include "../gpu.cuh"

// Sums of squares are float64, so that they neither overflow nor lose small terms; in scratch one takes two float32.
union Word {
	double value;
	float half[2];
};

DEVICE double block_sum64(double v, double part[32]) {
	for (int d = 16; d > 0; d /= 2)
		v += __shfl_xor_sync(all_lanes, v, d);
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	v = 0;
	for (int i = 0, warps = blockDim.x / 32; i < warps; i++)
		v += part[i];
	__syncthreads();
	return v;
}

DEVICE void leave(float *at, double v) {
	Word word;
	word.value = v;
	at[0] = word.half[0];
	at[1] = word.half[1];
}

DEVICE double take(const float *at) {
	Word word;
	word.half[0] = at[0];
	word.half[1] = at[1];
	return word.value;
}

// Each block leaves the sums of w*w and g*g over its share.
extern "C" __global__ void __launch_bounds__(256)
lars_rate(const float *w, const float *g, float *rate, int n, float k, float decay, float trust, float *scratch) {
	__shared__ double part[32];
	double ww = 0, gg = 0;
	for (int i = first(); i < n; i += stride()) {
		ww += (double)w[i] * w[i];
		gg += (double)g[i] * g[i];
	}
	ww = block_sum64(ww, part);
	gg = block_sum64(gg, part);
	if (threadIdx.x > 0)
		return;
	leave(scratch + 1 + 4 * blockIdx.x, ww);
	leave(scratch + 3 + 4 * blockIdx.x, gg);
	if (blockIdx.x == 0)
		scratch[0] = gridDim.x;
}

extern "C" __global__ void __launch_bounds__(256)
lars_rate_sum(const float *w, const float *g, float *rate, int n, float k, float decay, float trust, float *scratch) {
	__shared__ double part[32];
	const int shares = scratch[0];
	double ww = 0, gg = 0;
	for (int i = threadIdx.x; i < shares; i += 256) {
		ww += take(scratch + 1 + 4 * i);
		gg += take(scratch + 3 + 4 * i);
	}
	ww = block_sum64(ww, part);
	gg = block_sum64(gg, part);
	if (threadIdx.x > 0)
		return;
	const double norm = sqrt(ww), value = trust * norm / (fabs((double)k) * sqrt(gg) + fabs((double)decay) * norm);
	// NaN stays NaN; what is too large for a float32 times a gradient stays finite.
	*rate = ww == 0 ? trust : value > 1e30 ? 1e30f : (float)value;
}

extern "C" __global__ void lars(const float *w, const float *g, float *next, float *m, const float *rate, int n, float lr, float k,
                                float decay, float mu) {
	k *= *rate;
	decay *= *rate;
	for (int i = first(); i < n; i += stride()) {
		const float state = mu * m[i] + (k * g[i] + decay * w[i]);
		next[i] = w[i] - lr * state;
		m[i] = state;
	}
}
