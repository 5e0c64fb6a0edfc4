#include "../gpu.cuh"

extern "C" __global__ void axpy(const float *x, float *y, int n, float a) {
	for (int i = first(); i < n; i += stride())
		y[i] += a * x[i];
}

extern "C" __global__ void scale(const float *x, float *y, int n, float a) {
	for (int i = first(); i < n; i += stride())
		y[i] = a * x[i];
}
