#include "../gpu.cuh"

extern "C" __global__ void mse_loss(const float *z, const float *targets, float *g, float *loss, float *off, int rows) {
	for (int i = first(); i < rows; i += stride()) {
		const float d = z[i] - targets[i];
		loss[i] = d * d;
		off[i] = fabsf(d);
		if (g)
			g[i] = 2 * d;
	}
}

extern "C" __global__ void huber_loss(const float *z, const float *targets, float *g, float *loss, float *off, int rows, float delta) {
	for (int i = first(); i < rows; i += stride()) {
		const float d = z[i] - targets[i], a = fabsf(d);
		const bool near = a <= delta;
		loss[i] = near ? 0.5f * d * d : delta * (a - 0.5f * delta);
		off[i] = a;
		if (g) // d itself if it is not a number
			g[i] = near || d != d ? d : copysignf(delta, d);
	}
}
