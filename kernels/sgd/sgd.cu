#include "../gpu.cuh"

extern "C" __global__ void sgd(const float *w, const float *g, float *next, int n, float lr, float k, float decay) {
	for (int i = first(); i < n; i += stride())
		next[i] = w[i] - lr * (k * g[i] + decay * w[i]);
}

extern "C" __global__ void momentum(const float *w, const float *g, float *next, float *m, int n, float lr, float k,
                                    float decay, float mu) {
	for (int i = first(); i < n; i += stride()) {
		const float state = mu * m[i] + (k * g[i] + decay * w[i]);
		next[i] = w[i] - lr * state;
		m[i] = state;
	}
}

extern "C" __global__ void nesterov(const float *w, const float *g, float *next, float *m, int n, float lr, float k,
                                    float decay, float mu) {
	for (int i = first(); i < n; i += stride()) {
		const float gradient = k * g[i] + decay * w[i], state = mu * m[i] + gradient;
		next[i] = w[i] - lr * (gradient + mu * state);
		m[i] = state;
	}
}
