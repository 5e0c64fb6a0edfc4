#include "../gpu.cuh"

// NaN stays NaN, as fmaxf would not let it.
extern "C" __global__ void bias_relu(float *x, const float *bias, int rows, int cols) {
	for (int i = first(); i < rows * cols; i += stride()) {
		float v = x[i] + bias[i % cols];
		x[i] = v < 0 ? 0 : v;
	}
}

extern "C" __global__ void relu_grad(float *dx, const float *y, int rows, int cols) {
	for (int i = first(); i < rows * cols; i += stride())
		if (y[i] <= 0)
			dx[i] = 0;
}
