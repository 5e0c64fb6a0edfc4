#include "../gpu.cuh"

extern "C" __global__ void adam(const float *w, const float *g, float *next, float *m, float *v, const float *constants, int n,
                                float k, float decay, float rate, float root) {
	const float b1 = constants[0], c1 = constants[1], b2 = constants[2], c2 = constants[3], epsilon = constants[4];
	for (int i = first(); i < n; i += stride()) {
		const float gradient = k * g[i] + decay * w[i];
		const float m1 = b1 * m[i] + c1 * gradient, v1 = b2 * v[i] + c2 * gradient * gradient;
		next[i] = w[i] - rate * m1 / (root * sqrtf(v1) + epsilon);
		m[i] = m1;
		v[i] = v1;
	}
}
