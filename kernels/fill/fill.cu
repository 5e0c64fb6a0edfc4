#include "../gpu.cuh"

extern "C" __global__ void fill(float *x, int n, float value) {
	for (int i = first(); i < n; i += stride())
		x[i] = value;
}
