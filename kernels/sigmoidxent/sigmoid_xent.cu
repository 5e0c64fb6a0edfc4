#include "../gpu.cuh"

extern "C" __global__ void sigmoid_xent(const float *z, const float *labels, float *g, float *loss, float *hit, int rows) {
	for (int i = first(); i < rows; i += stride()) {
		const float v = z[i], y = labels[i];
		const float e = expf(-fabsf(v)); // at most 1, whatever the logit
		loss[i] = (v < 0 ? 0 : v) - v * y + log1pf(e);
		hit[i] = (v > 0) == (y > 0.5f) && v == v;
		if (g)
			g[i] = (v < 0 ? e : 1) / (1 + e) - y;
	}
}
